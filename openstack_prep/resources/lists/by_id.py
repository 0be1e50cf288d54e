"""Lists of Neutron limited to some values of a field, in as few requests as the length of addresses allows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from openstack_prep.base.raw import Raw
from openstack_prep.cloud.service import Service

CHUNK = 50
"""Values in one query: addresses may be some thousand letters long."""


def list_by_id(network: Service, collection: str, ids: Iterable[str], **query: Any) -> dict[str, Raw]:
    """Return resources with these ids, by id; raises CloudError."""
    return list_by(network, collection, "id", ids, **query)


def list_by(network: Service, collection: str, field: str, values: Iterable[str], **query: Any) -> dict[str, Raw]:
    """Return resources by id of which a field has one of these values; raises CloudError."""
    wanted, member = sorted(set(values)), collection.replace("-", "_")
    chunks = (wanted[start : start + CHUNK] for start in range(0, len(wanted), CHUNK))
    return {
        each["id"]: each
        for chunk in chunks
        for each in network.list(f"/{collection}", member, **{field: chunk, **query})
    }
