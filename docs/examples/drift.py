"""Report the drift of specs as Markdown, for a timer at night: python drift.py SPEC... > drift.md

The exit code is 0 without drift, 1 with some, 2 if a spec could not be compared. Nothing is changed.
"""

from __future__ import annotations

import sys

import openstack_prep as prep


def main(paths: list[str]) -> int:
    """Print a section per spec; return the exit code."""
    cloud = prep.connect()  # the entry that OS_CLOUD names
    code = 0
    for path in paths:
        try:
            found = prep.audit(cloud, prep.load_spec(path))
        except prep.PrepError as error:
            print(f"{path}: {error}", file=sys.stderr)
            code = 2
            continue
        print(f"## {path}")
        for drift in found:
            print(f"- `{drift.resource}` ({drift.code}): {drift.what}")
        if found:
            code = max(code, 1)
        else:
            print("no drift")
        print()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
