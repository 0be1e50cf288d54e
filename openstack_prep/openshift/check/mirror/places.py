"""Which repositories stand for another, and with which login.

Source: containers-registries.conf(5): the longest matching prefix decides, its mirrors are tried in order;
containers-auth.json(5): logins by registry, or by a path in it, the longest first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from openstack_prep.base.secret import Secret
from openstack_prep.openshift.install_config.model import Mirror

RELEASE = "quay.io/openshift-release-dev/ocp-release"
PAYLOADS = ("quay.io/openshift-release-dev/ocp-v4.0-art-dev", "quay.io/openshift-release-dev/ocp-v5.0-art-dev")
_LOGIN = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def mirrors_of(repository: str, sources: Iterable[Mirror]) -> list[str]:
    """Return the repositories that are asked in place of one, in this order."""
    covering = [each for each in sources if is_below(repository, each.source)]
    longest = max((each.source for each in covering), key=len, default=None)
    named = (mirror for each in covering if each.source == longest for mirror in each.mirrors)
    return list(dict.fromkeys(f"{mirror}{repository[len(longest or '') :]}" for mirror in named))


def is_below(repository: str, prefix: str) -> bool:
    """Whether a repository is one, or lies below it."""
    return repository == prefix or repository.startswith(f"{prefix}/")


def login_for(repository: str, pull_secret: Secret | None) -> Secret | None:
    """Return the login of a repository, USER:PASSWORD in base64; None without one, or without a valid one."""
    try:
        auths = json.loads(pull_secret.reveal())["auths"] if pull_secret else {}
        logins = {_without_scheme(str(place)): str(entry["auth"]) for place, entry in auths.items() if "auth" in entry}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    longest = max((place for place in logins if is_below(repository, place)), key=len, default=None)
    found = logins.get(longest or "")
    return Secret(found) if found and _LOGIN.fullmatch(found) else None


def _without_scheme(place: str) -> str:
    return re.sub("^https?://", "", place).rstrip("/")
