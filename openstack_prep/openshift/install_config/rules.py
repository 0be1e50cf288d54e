"""The rules of the installer, checked before it runs: what it rejects, or silently misinterprets.

Source: the OpenShift installer's validation (types/validation, types/openstack/validation,
installconfig/openstack/validation).  ``where`` of a mistake is the name of the field in a spec.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from urllib.parse import urlsplit

from openstack_prep.base.errors import Mistake
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Raw
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.content_rules import content_mistakes
from openstack_prep.openshift.install_config.document import values
from openstack_prep.openshift.install_config.machine_rules import MACHINE_RULES
from openstack_prep.openshift.install_config.model import Cluster, Contents
from openstack_prep.openshift.install_config.network_rules import NETWORK_RULES
from openstack_prep.openshift.install_config.releases import FIELDS, Field

LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"


def mistakes(cluster: Cluster, contents: Contents) -> list[Mistake]:
    """Return all mistakes of a cluster; an empty list if it can be installed."""
    try:
        release = releases.minor(cluster.release)
    except InvalidValue as error:
        return [error.at("release", cluster.release)]
    declared = values(cluster, contents)
    found = [*unwritable(declared, release), *content_mistakes(cluster, contents)]
    return found + list(chain.from_iterable(rule(cluster, release) for rule in RULES))


def unwritable(declared: Raw, release: int) -> Iterator[Mistake]:
    """Yield the values for which a release has no field, by the table."""
    for field in FIELDS:
        if field.of not in declared:
            continue
        spelling = field.spelling(release)
        if spelling is None:
            yield _not_yet_or_no_longer(field, release)
        elif spelling.single and len(declared[field.of]) > 1:
            newer = field.spellings[0]
            what = f"{spelling.name} of 4.{release} takes one value; {newer.name}, since 4.{newer.since}, takes several"
            yield Mistake(field.of, what, "give one")


def _not_yet_or_no_longer(field: Field, release: int) -> Mistake:
    newest, oldest = field.spellings[0], field.spellings[-1]
    if release < oldest.since:
        what = f"4.{release} has no {oldest.name}; available since 4.{oldest.since}"
        return Mistake(field.of, what, f"leave it out, or install 4.{oldest.since} or later")
    return Mistake(field.of, f"{newest.name} is ignored since 4.{newest.until}", "leave it out")


# --- names ----------------------------------------------------------------------


def _names(cluster: Cluster, release: int) -> Iterator[Mistake]:
    name, until = cluster.cluster_name, releases.SHORT_NAMES_UNTIL
    if "." in name:
        yield Mistake("cluster_name", f"{name!r} contains a dot", "move it into base_domain, or leave it out")
    elif not re.fullmatch(LABEL, name):
        yield Mistake("cluster_name", f"{name!r} is not a DNS label", "use lowercase letters, digits and hyphens")
    if len(name) > 14 and release < until:
        yield Mistake("cluster_name", f"{name!r} exceeds 14 characters, the maximum before 4.{until}", "shorten it")
    if not re.fullmatch(rf"{LABEL}(\.{LABEL})*\.?", cluster.base_domain):
        yield Mistake("base_domain", f"{cluster.base_domain!r} is not a domain", "write one such as example.com")


# --- other settings ---------------------------------------------------------------------------------------


def _publish(cluster: Cluster, release: int) -> Iterator[Mistake]:
    if cluster.publish == "Internal":
        yield Mistake("publish", "Internal is not supported on OpenStack", "leave it out, and the floating IPs too")


def _proxy(cluster: Cluster, release: int) -> Iterator[Mistake]:
    proxy = cluster.proxy
    if proxy is None:
        return
    if not (proxy.http or proxy.https):
        yield Mistake("proxy", "has no proxy", "give http or https")
    for where, url, schemes in (("http", proxy.http, ["http"]), ("https", proxy.https, ["http", "https"])):
        if url and not _is_url_of_host(url, schemes):  # it may hold a password
            yield Mistake(f"proxy.{where}", "is not the URL of a proxy", f"begin with {' or '.join(schemes)}://HOST")


def _is_url_of_host(url: str, schemes: Sequence[str]) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:  # invalid address in brackets, or invalid port
        return False


def _mirrors(cluster: Cluster, release: int) -> Iterator[Mistake]:
    for index, mirror in enumerate(cluster.image_mirrors):
        for name in (mirror.source, *mirror.mirrors):
            path = name.partition("/")[2]
            if "://" in name or ":" in path or "@" in path:
                what = f"{name!r} is not a repository"
                yield Mistake(f"image_mirrors[{index}]", what, "write HOST/PATH, without scheme, tag and digest")


def _capabilities(cluster: Cluster, release: int) -> Iterator[Mistake]:
    baseline = cluster.capabilities.baseline if cluster.capabilities else None
    if baseline in (None, "None", "vCurrent"):
        return
    found = re.fullmatch(r"v4\.(\d+)", baseline or "")
    if not found or not 11 <= int(found[1]) <= release:
        what = f"4.{release} has no capability set {baseline!r}"
        yield Mistake("capabilities.baseline", what, f"write None, vCurrent or v4.11 to v4.{release}")


RULES: tuple[Callable[[Cluster, int], Iterable[Mistake]], ...] = (
    _names,
    *MACHINE_RULES,
    *NETWORK_RULES,
    _publish,
    _proxy,
    _mirrors,
    _capabilities,
)
