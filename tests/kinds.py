"""All kinds that a spec declares, by ``Resource.kind``, in the order of the sections."""

from __future__ import annotations

from openstack_prep import extensions
from openstack_prep.core.model import Resource

KINDS: dict[str, type[Resource]] = {
    kind.kind: kind
    for kind in (extensions.load(each.kind) for each in extensions.sections())
    if issubclass(kind, Resource)
}
