"""An install-config as input: a file, or its parsed content."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.formats import yaml_places
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.raw import Raw, Steps, dotted, walk_steps
from openstack_prep.openshift.install_config.fields import FIELDS, OPENSTACK
from openstack_prep.openshift.install_config.paths import WITHOUT_CLOUD, find, known_paths, platform_of
from openstack_prep.resources.file_forms import refuse_other_form

NUMBERS = frozenset(
    (
        *("replicas", "size", "hostprefix", "hostsubnetlength", "clusternetworkmtu", "keysize"),
        *("generation", "deletiongraceperiodseconds"),  # of metadata
    )
)
"""Fields that take a number, in lowercase letters."""
TEXTS = frozenset(
    (
        *("types", "zones", "additionalnetworkids", "additionalsecuritygroupids", "externaldns", "servicenetwork"),
        *("apivips", "ingressvips", "mirrors", "additionalenabledcapabilities", "featuregates", "finalizers"),
    )
)
"""Fields with lists of texts, in lowercase letters (types of pkg/types at 5.0)."""
LISTS = frozenset(
    (
        *("compute", "machinenetwork", "clusternetwork", "clusternetworks", "fixedips", "disksetup", "credentials"),
        *("imagecontentsources", "imagedigestsources", "ownerreferences", "managedfields"),
    )
)
"""Fields with lists of mappings, in lowercase letters (types of pkg/types at 5.0)."""
BOOLEANS = frozenset(("fips", "controller", "blockownerdeletion"))
"""Fields that take true or false, in lowercase letters."""
AS_THEY_ARE = BOOLEANS | {"kind", "apiversion"}
"""Fields that take no text, and those of an embedded struct, whose types sigs.k8s.io/yaml does not look up."""
FREE_KEYS = frozenset(("labels", "annotations", "clusterosimageproperties"))
"""Fields with mappings whose keys are no fields, in lowercase letters."""
FOLDED = str.maketrans({"\u017f": "s", "\u212a": "K"})
"""Letters beyond ASCII that Go takes for s and k in the name of a field."""


def as_installer_reads(value: Any, *steps: str) -> Any:
    """Return a document in which booleans and numbers are the texts that the installer's fields for texts get.

    Source: sigs.k8s.io/yaml yaml.go, convertToJSONableObject: a number becomes a text where the Go field is a string;
    encoding/json writes 3.0 as 3, which a field for integers takes, and leaves an element that is null at its zero
    value: an empty text or mapping. It folds two letters beyond ASCII in keys (fold.go, equalFoldRight).

    ``steps`` are the keys on the way to the value, in lowercase letters.
    """
    name = steps[-1] if steps else ""
    if isinstance(value, Mapping):
        if name in FREE_KEYS:
            return {each: yaml_places.go_text(inner) for each, inner in value.items()}
        keys = {each: each.translate(FOLDED) if isinstance(each, str) else each for each in value}
        return {key: as_installer_reads(value[each], *steps, str(key).lower()) for each, key in keys.items()}
    if isinstance(value, list):
        zero: Any = "" if name in TEXTS else {} if name in LISTS else None
        return [zero if each is None else as_installer_reads(each, *steps) for each in value]
    if name in NUMBERS:
        is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**63
        return int(value) if is_whole else value
    is_endless = isinstance(value, float) and not math.isfinite(value)
    is_kept = name in AS_THEY_ARE or (is_endless and ".".join(steps) not in known_paths())
    return value if is_kept else yaml_places.go_text(value)


class InstallConfigValues:
    """The values of an install-config, and their places."""

    def __init__(self, source: str | Path | Raw, *, without_cloud: bool = False) -> None:
        """Read it; raises SpecError if it cannot be read, is not YAML, or is for another platform.

        ``without_cloud``: the platforms none and external are accepted as well.
        """
        self._document = None if isinstance(source, Mapping) else Document(Path(source), of_go=True)
        if self._document is not None:
            self._document.refuse_bare_keys()
        self.data: Any = as_installer_reads(source if self._document is None else self._document.data)
        self.repeated: list[Mistake] = []
        """Keys of which Go's YAML, read strictly, takes none, even where a merge key has one of two (yaml.v2)."""
        if self._document is not None:
            self.repeated = [*self._document.repeated, *self._document.overridden]
        self.repeated += [*self._in_other_case(), *self._not_in_json()]
        self.platform = platform_of(self.data)
        accepted = without_cloud and self.platform in WITHOUT_CLOUD and isinstance(self.value("platform"), Mapping)
        if not accepted and not isinstance(self.value(OPENSTACK), Mapping):
            raise SpecError([self._of_something_else()])

    def _in_other_case(self) -> Iterator[Mistake]:
        """Yield fields that are given twice, in different case: Go decodes both into one (encoding/json, Unmarshal)."""
        for steps, part in walk_steps(self.data):
            has_fields = isinstance(part, Mapping) and not (steps and str(steps[-1]).lower() in FREE_KEYS)
            first: dict[str, object] = {}
            for name in part if has_fields else ():
                shown = first.setdefault(str(name).lower(), name)
                if shown != name:
                    what = f"is the field {shown}, too: the installer reads keys in any case, both into one field"
                    yield Mistake(self._place((*steps, name)), what, "keep one of them")

    def _not_in_json(self) -> Iterator[Mistake]:
        """Yield keys and numbers for which JSON has no form, also in fields that no release knows."""
        for steps, part in walk_steps(self.data):
            if isinstance(part, Mapping) and None in part:
                what = "an entry has no key, and the installer stops where it converts the file into JSON"
                yield Mistake(self._place(steps), what, "write the key, in quotes if it is null or ~")
            if isinstance(part, float) and not math.isfinite(part):
                what = f"{yaml_places.go_text(part)} is no number of JSON, into which the installer converts the file"
                yield Mistake(self._place(steps), what, "write a number, or put it in quotes if it is text")

    def _of_something_else(self) -> Mistake:
        """Return what is wrong with the platform; raises SpecError for a file of another form."""
        if self._document is not None:
            path, accepted = self._document.path, ("an install-config.yaml of OpenShift",)
            refuse_other_form(self._document.data, self._document.place, path, "an install-config.yaml", accepted)
        platform = self.value("platform")
        there = ", ".join(map(str, platform)) if isinstance(platform, Mapping) else ""
        if platform == {}:
            return Mistake(self.place("platform"), "names no platform", "write openstack and its fields below it")
        what = f"is missing; the platform is {there}" if there and not find(self.data, OPENSTACK) else "is missing"
        return Mistake(self.place(OPENSTACK), what, "give an install-config.yaml for OpenStack")

    @property
    def path(self) -> Path | None:
        """The file; None if it was given as content."""
        return self._document.path if self._document else None

    def value(self, path: str) -> object:
        """Return the value at a path, keys in any case; None if it is missing."""
        found = find(self.data, path)
        return found[1] if found else None

    def field(self, of: str) -> tuple[str, object]:
        """Return path and value of a field by its name in a spec, in the spelling of any release."""
        paths = [each.path for field in FIELDS if field.of == of for each in field.spellings]
        path = next((each for each in paths if self.value(each)), paths[0])
        return path, self.value(path)

    def place(self, path: str) -> str:
        """Return "FILE:LINE: path"; for a missing field, the line of its nearest parent."""
        return path if self._document is None else f"{self._document.place(self._steps(path))}: {path}"

    def _place(self, steps: Steps) -> str:
        path = dotted(steps)
        return path if self._document is None else f"{self._document.place(steps)}: {path}"

    def place_of(self, where: str) -> str:
        """Return "FILE:LINE: where" of a field in the file, which may have numbers of elements; others as they are."""
        path = re.sub(r"\[\d*\]", "", where)
        return where if self.value(path) is None else self.place(path).removesuffix(path) + where

    def _steps(self, path: str) -> tuple[str | int, ...]:
        while path:
            found = find(self.data, path)
            if found:
                return found[0]
            path = path.rpartition(".")[0]
        return ()
