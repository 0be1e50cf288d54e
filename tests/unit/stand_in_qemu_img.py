"""A stand-in for qemu-img: a shell script that converts nothing, and gives what a test prepared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SCRIPT = """\
#!/bin/sh
echo "$1" >> {folder}/called
case "$1" in
    info) cat {folder}/info.json;;
    map) cat {folder}/map.json;;
    convert) for target; do :; done; cat {folder}/raw > "$target"; {ending};;
esac
"""


def stand_in(
    folder: Path, raw: bytes, *, info: dict[str, Any] | None = None, extents: Any = (), ending: str = "true"
) -> Path:
    """Put one into a folder that a test can put on the PATH; it converts anything to ``raw``."""
    folder.mkdir()
    (folder / "raw").write_bytes(raw)
    (folder / "info.json").write_text(json.dumps(info or {}))
    (folder / "map.json").write_text(json.dumps(extents))
    script = folder / "qemu-img"
    script.write_text(SCRIPT.format(folder=folder, ending=ending))
    script.chmod(0o755)
    return folder
