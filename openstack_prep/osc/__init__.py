"""The plugin of python-openstackclient: ``openstack prep ...``.

Its commands are those of ``openstack_prep.cli``, with the client's own choice of a cloud and cliff's formatters.
"""
