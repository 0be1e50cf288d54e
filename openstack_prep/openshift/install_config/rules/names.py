"""Rules of the installer for names.

Source: the OpenShift installer's validation (validate/validate.go: ClusterName, DomainName).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from openstack_prep.base.errors import Mistake
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.model import InstallConfigFields

SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"  # k8s IsDNS1123Subdomain
LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
LONGEST_NAME, LONGEST_SHORT_NAME, LONGEST_DOMAIN = 54, 14, 253


def _names(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    name, domain = cluster.cluster_name, cluster.base_domain
    if "." in name:
        yield Mistake("cluster_name", f"{name!r} contains a dot", "move it into base_domain, or leave it out")
    elif not re.fullmatch(LABEL, name):
        yield Mistake("cluster_name", f"{name!r} is not a DNS label", "use lowercase letters, digits and hyphens")
    if release in releases.SHORT_NAMES and len(name) > LONGEST_SHORT_NAME:
        before = f"before {releases.name(releases.SHORT_NAMES.until)}"
        what = f"{name!r} exceeds {LONGEST_SHORT_NAME} characters, the maximum {before}"
        yield Mistake("cluster_name", what, "shorten it")
    elif len(name) > LONGEST_NAME:
        yield Mistake("cluster_name", f"{name!r} exceeds {LONGEST_NAME} characters, the maximum", "shorten it")
    if not re.fullmatch(rf"{LABEL}(\.{LABEL})*\.?", domain):
        yield Mistake("base_domain", f"{domain!r} is not a domain", "write one such as example.com")
    elif len(f"{name}.{domain}".rstrip(".")) > LONGEST_DOMAIN:
        what = f"the domain of the cluster, {name}.{domain}, exceeds {LONGEST_DOMAIN} characters"
        yield Mistake("base_domain", what, "shorten it")


NAME_RULES = (_names,)
