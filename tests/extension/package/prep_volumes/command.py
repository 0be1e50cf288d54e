"""``volumes usage``: the volumes in the projects of a spec."""

from __future__ import annotations

import argparse

from openstack_prep.cli import AddCommand
from openstack_prep.cli.of_spec import add_spec
from openstack_prep.cli.output import print_result, reading
from openstack_prep.cli.running import open_spec
from openstack_prep.cli.shapes import BOOLEAN, INTEGER, TEXT, document, json_object, list_of
from openstack_prep.verbs.opening import open_run
from openstack_prep.verbs.scan import homes_of
from prep_volumes.volume import Volume, VolumeRecord

PARTS = {
    "volume": json_object({"name": TEXT, "id": TEXT, "status": TEXT, "size": INTEGER, "managed": BOOLEAN}),
}
DOCUMENTS = {
    "volumes_usage": document(
        "volumes usage; sizes in GiB", {"spec": TEXT, "gigabytes": INTEGER, "volumes": list_of("volume")}
    ),
}


def add(command: AddCommand) -> None:
    """Add it to the parser."""
    add_spec(command("volumes usage", _run))


def _run(options: argparse.Namespace) -> int:
    cloud, spec = open_spec(options, options.spec)
    with reading(options):
        spec, run = open_run(cloud, spec, options.jobs)
        standing = [each for home in homes_of(spec.resources) for each in Volume.scan(run, home)]
    rows = []
    for volume, observed in standing:
        status = observed.record_as(VolumeRecord).status
        size, managed = volume.size, observed.ours
        rows.append({"name": volume.name, "id": observed.id, "status": status, "size": size, "managed": managed})
    total = sum(volume.size for volume, _ in standing)
    lines = [f"{each['name']}  {each['size']} GiB  {each['status']}" for each in rows]
    text = "\n".join([*lines, f"{len(rows)} volumes, {total} GiB"])
    print_result(options, text, {"spec": spec.name, "gigabytes": total, "volumes": rows})
    return 0
