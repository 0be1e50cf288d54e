"""An install-config that was given: by its file, or as what was read of one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.raw import Raw
from openstack_prep.base.yaml_places import Document
from openstack_prep.openshift.install_config.reading import find
from openstack_prep.openshift.install_config.releases import FIELDS, OPENSTACK


class Given:
    """What stands in an install-config, and where."""

    def __init__(self, source: str | Path | Raw) -> None:
        """Read it; raises SpecError when it cannot be read, is no YAML, or is for another platform."""
        self._document = None if isinstance(source, Mapping) else Document(Path(source))
        self.data: Any = source if self._document is None else self._document.data
        self.repeated: list[Mistake] = self._document.repeated if self._document else []
        if not isinstance(self.value(OPENSTACK), Mapping):
            raise SpecError([self._of_something_else()])

    def _of_something_else(self) -> Mistake:
        platform = self.value("platform")
        if self.value("apiVersion") is None and self.value("install_config") is not None:
            name = self._document.path if self._document else "it"
            remedy = f"openstack-prep apply {name}, then give the install-config.yaml that it writes"
            return Mistake(self.place("install_config"), "this is a spec of openstack-prep", remedy)
        there = ", ".join(map(str, platform)) if isinstance(platform, Mapping) else ""
        what = f"is missing; there is {there}" if there and not find(self.data, OPENSTACK) else "is missing"
        return Mistake(self.place(OPENSTACK), what, "give an install-config.yaml for OpenStack")

    def value(self, path: str) -> object:
        """Return what stands at a path, keys in any case; None when nothing does."""
        found = find(self.data, path)
        return found[1] if found else None

    def field(self, of: str) -> tuple[str, object]:
        """Return a field, by what we call it, in whichever release's words it stands there: its path and value."""
        paths = [each.path for field in FIELDS if field.of == of for each in field.spellings]
        path = next((each for each in paths if self.value(each)), paths[0])
        return path, self.value(path)

    def place(self, path: str) -> str:
        """Return "FILE:LINE: path", the line of what is nearest around it if it is not there."""
        if self._document is None:
            return path
        return f"{self._document.place(self._steps(path))}: {path}"

    def _steps(self, path: str) -> tuple[str | int, ...]:
        while path:
            found = find(self.data, path)
            if found:
                return found[0]
            path = path.rpartition(".")[0]
        return ()
