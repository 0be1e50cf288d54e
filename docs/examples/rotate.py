"""Renew the application credentials of specs, and keep the old ones: python rotate.py SPEC...

Each clouds.yaml gets the new credentials; the former entry CLOUD is then CLOUD-old. When nothing uses it any more,
take it out of the file: the next apply deletes the credential.
"""

from __future__ import annotations

import sys

import openstack_prep as prep


def main(paths: list[str]) -> int:
    """Rotate; return the exit code."""
    cloud = prep.connect()  # the entry that OS_CLOUD names
    failed = 0
    for path in paths:
        try:
            plan = prep.plan_rotation(cloud, prep.load_spec(path), keep_old=True)
            report = prep.apply(cloud, plan, lock_timeout=600)  # seconds
            report.raise_for_failures()
        except prep.PrepError as error:
            print(f"{path}: {error}", file=sys.stderr)
            failed += 1
            continue
        for result in report.changed:
            print(f"{path}: {result.step}: {result.step.action}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
