"""One cloud for the plans of many specs: what all of them read, and what single projects hold, is read once.

A plan of one spec reads each list for its project. Plans of a thousand specs would ask each service a thousand times
for what one list of all projects contains. ``SharedCloud`` answers such reads from that list, so a plan is the same as
with a cloud of its own, as of the moment at which the list was read. It is for one phase of planning, and never for
writing: apply plans again with a cloud of its own.
"""

from openstack_prep.cloud.shared.cloud import SharedCloud

__all__ = ["SharedCloud"]
