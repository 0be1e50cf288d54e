"""What this package adds to openstack-prep. It is read for each --help, so it imports nothing else."""

from openstack_prep.extensions import Command, Extension, Scan, Section

EXTENSION = Extension(
    name="volumes",
    heading="Volumes",
    sections=(Section("volumes", "prep_volumes.volume:Volume", "Volumes of Cinder.", after="server_groups"),),
    scans=(Scan("prep_volumes.volume:Volume"),),
    check="prep_volumes.check:check",
    groups={"volumes": "volumes of Cinder"},
    commands={
        "prep_volumes.command": {
            "volumes usage": Command(
                "list the volumes of a spec's projects, with their sizes",
                {
                    "volumes usage spec.yaml": "for people",
                    "volumes usage spec.yaml --format json": "for programs",
                },
            ),
        },
    },
    documents="prep_volumes.command",
    codes="prep_volumes",
)
