"""Rules of the installer for mirrors of image repositories.

Source: the OpenShift installer's validation (types/validation/installconfig.go: validateNamedRepository), which
takes names as containers/image docker/reference does: in full, without the parts that Docker adds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from openstack_prep.base.errors import Mistake
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.model import InstallConfigFields
from openstack_prep.openshift.install_config.rules.names import SUBDOMAIN

_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:[._]|__|[-]*)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"(?P<domain>{_DOMAIN})/(?P<path>{_PART}(?:/{_PART})*)")
_ID = re.compile("[a-f0-9]{64}")  # of an image, which no name may look like
_LONGEST = 255
DOCKER, ALIAS = "docker.io", "index.docker.io"


def _mirrors(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    for index, mirror in enumerate(cluster.image_mirrors):
        for name in (mirror.source, *mirror.mirrors):
            if not (_is_repository(name) or (_is_registry(name) and release in releases.REGISTRIES_ALONE)):
                fix = "write HOST/PATH in lowercase letters, without scheme, tag, digest, wildcard and trailing slash"
                yield Mistake(f"image_mirrors[{index}]", f"{name!r} is not a repository", fix)


def _is_repository(name: str) -> bool:
    """Whether a name is a repository in full: quay.io/okd/release, and neither okd/release nor quay.io/okd:tag."""
    found = _REPOSITORY.fullmatch(name)
    if not found or len(name) > _LONGEST:
        return False
    domain, path = found["domain"], found["path"]
    is_host = "." in domain or ":" in domain or domain == "localhost"
    return is_host and domain != ALIAS and (domain != DOCKER or "/" in path)


def _is_registry(name: str) -> bool:
    """Whether a name is a host, with or without its port."""
    return bool(re.fullmatch(rf"{SUBDOMAIN}(:[0-9]+)?", name)) and not _ID.fullmatch(name)


REGISTRY_RULES = (_mirrors,)
