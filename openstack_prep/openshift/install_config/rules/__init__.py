"""The rules of the installer, checked before it runs: what it rejects, or silently misinterprets.

Source: the OpenShift installer's validation (types/validation, types/openstack/validation,
installconfig/openstack/validation); ``releases`` names the releases of each rule, and their source.  ``where`` of a
mistake is the name of the field in a spec.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from openstack_prep.base.errors import Mistake
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Raw
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.document import has_previews, values
from openstack_prep.openshift.install_config.fields import FIELDS, Field
from openstack_prep.openshift.install_config.model import FileContents, InstallConfigFields
from openstack_prep.openshift.install_config.rules.contents import (
    FEATURE_RULES,
    FEATURE_RULES_WITHOUT_CLOUD,
    PROXY_RULES,
    REGISTRY_RULES,
    capabilities,
    content_mistakes,
)
from openstack_prep.openshift.install_config.rules.machines import MACHINE_RULES
from openstack_prep.openshift.install_config.rules.names import NAME_RULES
from openstack_prep.openshift.install_config.rules.networks import NETWORK_RULES, NETWORK_RULES_WITHOUT_CLOUD

RULES: tuple[Callable[[InstallConfigFields, int], Iterable[Mistake]], ...] = (
    *NAME_RULES,
    *MACHINE_RULES,
    *NETWORK_RULES,
    *PROXY_RULES,
    *REGISTRY_RULES,
    *FEATURE_RULES,
)


RULES_WITHOUT_CLOUD: tuple[Callable[[InstallConfigFields, int], Iterable[Mistake]], ...] = (
    *NAME_RULES,
    *NETWORK_RULES_WITHOUT_CLOUD,
    *PROXY_RULES,
    *REGISTRY_RULES,
    *FEATURE_RULES_WITHOUT_CLOUD,
)
"""Those for the platforms none and external."""


def mistakes(
    cluster: InstallConfigFields, contents: FileContents, mandatory: Mapping[str, int] | None = None
) -> list[Mistake]:
    """Return all mistakes of a cluster; an empty list if it can be installed.

    ``mandatory``: for platforms without a cloud, the capabilities that the cluster needs, by first release.
    """
    try:
        release = releases.minor(cluster.release)
    except InvalidValue as error:
        return [error.at("release", cluster.release)]
    declared = values(cluster, contents)
    found = [*unwritable(declared, release, previews=has_previews(cluster)), *content_mistakes(cluster, contents)]
    if mandatory is None:
        found += chain.from_iterable(rule(cluster, release) for rule in RULES)
    else:
        found += chain.from_iterable(rule(cluster, release) for rule in RULES_WITHOUT_CLOUD)
        found += capabilities(cluster, release, mandatory)
    return [replace(mistake, code="install-config.invalid") for mistake in found]


def unwritable(declared: Raw, release: int, *, previews: bool) -> Iterator[Mistake]:
    """Yield the values for which a release has no field, by the table."""
    for field in FIELDS:
        if field.of not in declared:
            continue
        spelling = field.spelling(release, previews=previews)
        if spelling is None:
            yield _not_yet_or_no_longer(field, release)
        elif spelling.single and len(declared[field.of]) > 1:
            newer, since = field.spellings[0], releases.name(field.spellings[0].since)
            what = f"{spelling.name} of {releases.name(release)} takes one value; {newer.name}, since {since}, takes"
            yield Mistake(field.of, f"{what} several", "give one")


def _not_yet_or_no_longer(field: Field, release: int) -> Mistake:
    newest, oldest = field.spellings[0], field.spellings[-1]
    if oldest.gated and release >= oldest.since:
        what = f"{oldest.name} is a preview in {releases.name(release)}"
        return Mistake(field.of, what, f"leave it out, or set feature_set: {releases.PREVIEWS[0]}")
    if release < oldest.since:
        since = next(spelling for spelling in reversed(field.spellings) if not spelling.gated).since
        what = f"{releases.name(release)} has no {oldest.name}; available since {releases.name(since)}"
        return Mistake(field.of, what, f"leave it out, or install {releases.name(since)} or later")
    return Mistake(field.of, f"{newest.name} is ignored since {releases.name(newest.until)}", "leave it out")
