"""What setup.cfg cannot say: folders at the top that are packages, generated files, archives that can be reproduced.

The man page and the completion of shells are made of the command's parser, which needs no package but this one.
"""

from __future__ import annotations

import gzip
import os
import sys
import tarfile
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.sdist import sdist

from distutils.command.install_data import install_data  # setuptools brings it; isort: skip

DATA = ["openstack_prep.heat_templates", "openstack_prep.install_configs"]  # where they lie: package_dir in setup.cfg
NAME = "openstack-prep"


def generated() -> dict[str, str]:
    """Return the texts of the man page and of the completion, by path below the prefix of an installation."""
    sys.path.insert(0, str(Path(__file__).parent))
    os.environ["COLUMNS"] = "80"  # argparse wraps lines
    from argparse_manpage.manpage import Manpage

    from openstack_prep.cli.main import build_parser
    from openstack_prep.cli.reference.completion import script
    from openstack_prep.extensions import commands
    from openstack_prep.version import __version__

    page = Manpage(build_parser())
    page.description = "prepare OpenStack projects for OpenShift, RKE2 and RKE"
    page.source, page.manual = f"openstack_prep {__version__}", "User Commands"
    examples = (line for each in commands().values() for line in each.examples.items())
    lines = (f"# {about}\n{NAME} {line}" for line, about in examples)
    page.add_section("examples", ">", "\n".join([".nf", *lines, ".fi"]).replace("-", "\\-"))
    return {
        f"share/man/man1/{NAME}.1": str(page),
        f"share/bash-completion/completions/{NAME}": script(build_parser(), "bash"),
        f"share/zsh/site-functions/_{NAME}": script(build_parser(), "zsh"),
        f"share/fish/vendor_completions.d/{NAME}.fish": script(build_parser(), "fish"),
    }


class InstallData(install_data):
    """Writes the generated files when a wheel is built; an editable installation has none."""

    def run(self) -> None:
        self.run_command("egg_info")  # its entry points lead to the commands of extensions
        base = Path(self.get_finalized_command("build").build_base)
        self.data_files = []
        for name, text in generated().items():
            (base / name).parent.mkdir(parents=True, exist_ok=True)
            (base / name).write_text(text)
            self.data_files.append((str(Path(name).parent), [str(base / name)]))
        super().run()


class Sdist(sdist):
    """Writes the same archive for the same files: setuptools writes times and users of the machine into it."""

    def make_archive(
        self, base_name: str, format: str, root_dir: object = None, base_dir: str = "", **_: object
    ) -> str:
        time = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))

        def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = time
            info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
            return info

        path = f"{base_name}.tar.gz"
        with (
            open(path, "wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=time) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for each in sorted([Path(base_dir), *Path(base_dir).rglob("*")]):
                archive.add(each, recursive=False, filter=plain)
        return path


setup(
    packages=[*find_packages(include=["openstack_prep", "openstack_prep.*"]), *DATA],
    data_files=[("share/man/man1", [])],  # InstallData lists them
    cmdclass={"install_data": InstallData, "sdist": Sdist},
)
