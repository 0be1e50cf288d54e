"""What this package adds to openstack-prep. It is read for each --help, so it imports nothing else."""

from openstack_prep.extensions import Extension, Scan, Section

EXTENSION = Extension(
    name="volumes",
    sections=(Section("volumes", "prep_volumes.volume:Volume", "Volumes of Cinder.", after="server_groups"),),
    scans=(Scan("prep_volumes.volume:Volume"),),
    check="prep_volumes.check:check",
    groups={"volumes": "volumes of Cinder"},
    commands={"prep_volumes.command": {"volumes usage": "list the volumes of a spec's projects, with their sizes"}},
    documents="prep_volumes.command",
    codes="prep_volumes",
)
