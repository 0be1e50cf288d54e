"""``explain``: what the code of a diagnostic means, why it matters, how to fix it, and the source."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Mapping

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.suggestion import ask, similar
from openstack_prep.cli.output import print_result
from openstack_prep.reports.codes import read_codes

WIDTH = 110
PARTS = ("means", "why", "fix", "source")


def run(options: argparse.Namespace) -> int:
    codes = read_codes()
    if options.code is None:
        width = max(map(len, codes))
        print_result(options, "\n".join(f"{code:<{width}}  {each['means']}" for code, each in codes.items()), codes)
        return 0
    if options.code not in codes:
        raise ConfigError(_unknown(options.code, codes))
    entry = codes[options.code]
    print_result(options, "\n".join([options.code, *_lines(entry)]), {"code": options.code, **entry})
    return 0


def _lines(entry: Mapping[str, str]) -> Iterator[str]:
    for part in PARTS:
        indent = f"  {part + ':':<8}"
        later = " " * len(indent)
        yield textwrap.fill(entry[part], WIDTH, initial_indent=indent, subsequent_indent=later, break_on_hyphens=False)


def _unknown(code: str, codes: Mapping[str, object]) -> str:
    """Return the error for a code that does not exist, with the nearest ones."""
    area = code.partition(".")[0]
    near = similar(code, codes, count=3) or [each for each in codes if each.partition(".")[0] == area]
    advice = ask(near, "openstack-prep explain lists all codes")
    return f"explain: {code!r} is not a code; {advice}"
