"""The program of Terraform's data source ``external``: what exists of a spec, for other resources of Terraform.

It reads an object such as {"spec": "lab.yaml", "cloud": "admin"} from its standard input, and prints one whose values
are texts: of each existing resource its id, by names such as floating_ip/api, and its outputs, by names such as
floating_ip/api.address. Nothing is changed. An error is a text on standard error, and the exit code 1.
"""

from __future__ import annotations

import json
import sys

import openstack_prep as prep


def main() -> int:
    """Answer the query; return the exit code."""
    query = json.load(sys.stdin)
    try:
        spec = prep.load_spec(query["spec"])
        found = prep.show(prep.connect(query.get("cloud")), spec)
    except prep.PrepError as error:
        print(error, file=sys.stderr)
        return 1
    there = {str(key): each for key, each in found.items() if each is not None}
    outputs = {f"{key}.{name}": text for key, each in there.items() for name, text in each.outputs.items()}
    print(json.dumps({key: each.id for key, each in there.items()} | outputs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
