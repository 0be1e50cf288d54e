"""What a cloud keeps on disk: made whole or not at all, copied, also from another cloud, restored, deleted."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import sqlite3
from pathlib import Path

from tests.devcloud import config, venv
from tests.devcloud.layout import OFFSETS, DevcloudError, Layout, ovn_root, with_designate, with_octavia, with_packets

HERE = Path(__file__).parent
BUILDERS = (
    "config/*.py",
    "layout.py",
    "build.py",
    "fill.py",
    "server/neutron_schema.py",
    "server/octavia_schema.py",
    "server/ovn.py",
    "server/manage.py",
    "server/sqlite_tuning.py",
)

# Everything that may lie in a cloud's directory, and so everything that is ever deleted there.
PARTS = (
    "complete",
    "pristine",
    "pristine.partial",
    "data",
    "db",
    "etc",
    "run",
    "log",
    "clouds.yaml",
    "clouds.yaml.new",
)


def stamp(layout: Layout) -> str:
    """What a state has been built from and where; built from anything else, it will not do."""
    choices = (ovn_root(), with_designate(), with_packets(), with_octavia())
    digest = hashlib.sha256("\0".join(map(str, (venv.stamp(), layout.home, *choices))).encode())
    for pattern in BUILDERS:
        for path in sorted(HERE.glob(pattern)):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def has_pristine(layout: Layout) -> bool:
    return _reads(layout.pristine / "stamp", stamp(layout))


def is_complete(layout: Layout) -> bool:
    """Whether db and data are whole: neither being built nor being copied when something ended."""
    return _reads(_marker(layout), stamp(layout))


def spoil(layout: Layout) -> None:
    """Call db and data incomplete: they have to be restored before anything starts on them."""
    _marker(layout).unlink(missing_ok=True)


def _marker(layout: Layout) -> Path:
    return layout.home / "complete"


def _reads(path: Path, text: str) -> bool:
    try:
        return path.read_text() == text
    except OSError:
        return False


def keep_as_pristine(layout: Layout) -> None:
    """Make the copy that ``restore`` brings back; the services may run meanwhile."""
    partial = layout.home / "pristine.partial"
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "db").mkdir(parents=True)
    for path in layout.db.glob("*.sqlite"):
        # SQLite's own copy is whole even while in use, and has no write-ahead log beside it
        with (
            contextlib.closing(sqlite3.connect(path)) as old,
            contextlib.closing(sqlite3.connect(partial / "db" / path.name)) as new,
        ):
            new.execute("PRAGMA synchronous=OFF")
            old.backup(new)
    _copy_tree(layout.data, partial / "data")
    _complete(layout, partial)
    _marker(layout).write_text(stamp(layout))


def _complete(layout: Layout, partial: Path) -> None:
    (partial / "stamp").write_text(stamp(layout))
    shutil.rmtree(layout.pristine, ignore_errors=True)
    partial.rename(layout.pristine)


def built_alike(layout: Layout) -> Layout | None:
    """Return another cloud whose first state can be copied; OVN and Designate keep ports in forms of their own."""
    if ovn_root() or with_designate():
        return None
    bases = sorted(int(path.name) for path in layout.root.iterdir() if path.name.isdigit())
    clouds = (Layout(base, layout.root) for base in bases if base != layout.base)
    return next((each for each in clouds if has_pristine(each)), None)


def adopt(layout: Layout, other: Layout) -> None:
    """Make the first state of a cloud from another one's, with this one's ports and paths.

    Swift's rings, which hold ports, are those that this cloud has in ``data`` already.
    """
    partial = layout.home / "pristine.partial"
    shutil.rmtree(partial, ignore_errors=True)
    _copy_tree(other.pristine, partial)
    for path in (partial / "db").glob("*.sqlite"):
        _replace_addresses(path, other, layout)
    for part in ("rings", "keystone/fernet"):  # a token of one cloud must not open the other
        shutil.rmtree(partial / "data" / part)
        _copy_tree(layout.data / part, partial / "data" / part)
    _complete(layout, partial)


def _replace_addresses(path: Path, old: Layout, new: Layout) -> None:
    """Let a database name the ports and the folder of a cloud where it named those of another."""
    addresses = {old.url(service): new.url(service) for service in OFFSETS}
    addresses[f"{old.home}/"] = f"{new.home}/"
    pattern = re.compile(f"({'|'.join(map(re.escape, addresses))})")
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        for (table,) in tables.fetchall():
            rows = database.execute(f'SELECT rowid, * FROM "{table}"')
            names = [column[0] for column in rows.description][1:]
            for number, *values in rows.fetchall():
                for name, value in zip(names, values, strict=True):
                    if isinstance(value, str) and pattern.search(value):
                        replaced = pattern.sub(lambda found: addresses[found[0]], value)
                        database.execute(f'UPDATE "{table}" SET "{name}" = ? WHERE rowid = ?', (replaced, number))


def restore(layout: Layout) -> None:
    """Bring back db and data as first built.  Nothing may have the databases open."""
    spoil(layout)
    for part, target in (("db", layout.db), ("data", layout.data)):
        shutil.rmtree(target, ignore_errors=True)
        _copy_tree(layout.pristine / part, target)
    config.write(layout)
    _marker(layout).write_text(stamp(layout))


def _copy_tree(source: Path, target: Path) -> None:
    """Copy with modes, times and the extended attributes that Swift keeps its metadata in; without OVN's sockets."""
    shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("*.sock", "*.ctl"))


def delete(layout: Layout) -> None:
    """Delete a cloud's directory: what we may have put there, and nothing else."""
    if layout.home.is_symlink():
        raise DevcloudError(f"{layout.home} is a symbolic link; it is not deleted")
    for part in PARTS:
        path = layout.home / part
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # not there, or somebody keeps something in it
        layout.home.rmdir()
