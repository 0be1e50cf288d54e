"""The form of a document, which may be that of another program, for commands that are given the wrong file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from openstack_prep import extensions
from openstack_prep.base import shell
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.raw import Raw
from openstack_prep.extensions import FileForm

SPEC = "a spec of openstack-prep"


def recognise(data: object) -> tuple[str, FileForm] | None:
    """Return the key by which a document is known, and its form; None for a document of no known form."""
    if not isinstance(data, Mapping):
        return None
    for form in (form for extension in extensions.installed() for form in extension.forms):
        key = extensions.load(form.find)(data) if form.find else next((key for key in form.keys if key in data), None)
        if key is not None:
            return key, form
    return None


def refuse_other_form(
    data: object, place: Callable[[Sequence[str | int]], str], path: object, wanted: str, accepted: Collection[str]
) -> None:
    """Raise SpecError for a document whose form is known and is not ``accepted``: one error in place of one per key.

    ``place`` returns the place of a key, ``path`` is the file for a command, and ``wanted`` names the right file.
    """
    found = recognise(data)
    if found is None or found[1].what in accepted:
        return
    key, form = found
    fix = f"run `openstack-prep {form.command.format(shell.quote(str(path)))}`" if form.command else f"name {wanted}"
    raise SpecError([Mistake(place([key]), f"is {form.what}, not {wanted}", fix, code=Code.SPEC_UNREADABLE)])


def find_spec(data: Raw) -> str | None:
    """Return the first section that only a spec has: a list of resources, or a single one in a file with a name."""
    if "nodes" in data:  # of a cluster.yml of RKE
        return None
    for section in extensions.sections():
        value = data.get(section.name)
        if section.many and isinstance(value, list) and section.name not in extensions.AMBIGUOUS:
            return section.name
        if not section.many and isinstance(value, Mapping) and "name" in data:
            return section.name
    return None


def find_saved_plan(data: Raw) -> str | None:
    """Return the key of the program that wrote a saved plan."""
    return "made_by" if "made_by" in data and "targets" not in data else None


def find_clouds(data: Raw) -> str | None:
    """Return ``clouds`` if it has entries, as in clouds.yaml; that of a spec has names of entries."""
    clouds = data.get("clouds")
    if "name" in data or not isinstance(clouds, Mapping):
        return None
    return "clouds" if all(isinstance(cloud, Mapping) for cloud in clouds.values()) else None
