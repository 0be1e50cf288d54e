"""YAML that remembers where everything stood.

Source: YAML 1.1 as PyYAML reads it; a key given twice, which YAML forbids and PyYAML lets pass, is
a mistake here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from openstack_prep.errors import Mistake, SpecError


class Document:
    """One YAML document: its ``data`` and the line of each part of it."""

    def __init__(self, path: Path) -> None:
        """Read a file; raises SpecError when it cannot be read or is not one YAML document."""
        self.path = path
        try:
            loader = yaml.SafeLoader(path.read_text())
            self._root = loader.get_single_node()
        except (OSError, UnicodeDecodeError) as error:
            raise SpecError([Mistake(str(path), f"cannot be read: {error}", "name a readable YAML file")]) from None
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            said = ", ".join(filter(None, (error.context, error.problem)))
            raise SpecError([Mistake(f"{path}:{line}", f"is not YAML: {said}", "mend the syntax there")]) from None
        except yaml.YAMLError as error:
            raise SpecError([Mistake(str(path), f"is not YAML: {error}", "save it as UTF-8 text")]) from None
        self.repeated = list(self._repeated(self._root))
        self.data: Any = loader.construct_document(self._root) if self._root else None

    def _repeated(self, node: Any) -> list[Mistake]:
        found: list[Mistake] = []
        if isinstance(node, yaml.MappingNode):
            first: dict[str, int] = {}
            for key, value in node.value:
                line = key.start_mark.line + 1
                if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                    if key.value in first:
                        what = f"{key.value} stands here and in line {first[key.value]}"
                        found.append(Mistake(f"{self.path}:{line}", what, "keep one of them"))
                    first.setdefault(key.value, line)
                found += self._repeated(value)
        elif isinstance(node, yaml.SequenceNode):
            for value in node.value:
                found += self._repeated(value)
        return found

    def place(self, where: Sequence[str | int]) -> str:
        """Return "file:line" of a part, or of the innermost thing around it that exists."""
        node, line = self._root, 1
        for step in where:
            if isinstance(node, yaml.MappingNode):
                pair = next(((key, value) for key, value in node.value if key.value == str(step)), None)
                if pair is None:
                    break
                line, node = pair[0].start_mark.line + 1, pair[1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
                line = node.start_mark.line + 1
            else:
                break
        return f"{self.path}:{line}"
