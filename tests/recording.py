"""The picture of README: its ten lines, planned, applied, changed by somebody, repaired and destroyed on a devcloud.

``tox -e recording`` writes docs/images/recording.svg. Each line appears when the run has printed it; what shows no
animation shows all lines.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import time
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tests.show import Show, begin

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "recording.svg"
SPEC = "shop.yaml"
COMMANDS = (
    f"openstack-prep plan {SPEC}",
    f"openstack-prep apply --yes {SPEC}",
    f"openstack-prep apply --yes {SPEC}",
    "openstack quota set --cores 7 shop  # somebody else",
    f"openstack-prep plan {SPEC}",
    f"openstack-prep apply --yes {SPEC}",
    f"openstack-prep destroy --yes {SPEC}",
)
WIDTH = 110
PAUSE = 1.0  # seconds before each command, in which a person reads
APPEAR = (
    "@keyframes appear { from { opacity: 0 } } @media (prefers-reduced-motion) { text { animation: none !important } }"
)


def ten_lines() -> str:
    """Return the spec that README shows."""
    (spec,) = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    return str(spec)


def record(show: Show) -> list[tuple[float, str]]:
    """Run the commands; returns each line with the seconds after which it was there, colours as a terminal has them."""
    environment = os.environ | show.admin | {"COLUMNS": str(WIDTH)}
    lines: list[tuple[float, str]] = []
    started, pauses = time.monotonic(), 0.0
    for command in COMMANDS:
        pauses += PAUSE
        lines.append((time.monotonic() - started + pauses, f"\x1b[1m$ {command}\x1b[0m"))
        words = shlex.split(command, comments=True)
        colours = ["--color", "always"] if words[0] == "openstack-prep" else []
        with subprocess.Popen(
            [*words, *colours], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append((time.monotonic() - started + pauses, line.rstrip("\n").replace(str(show.place), "~")))
        if process.returncode:
            raise SystemExit(f"recording: {command}: exit code {process.returncode}\n" + "\n".join(t for _, t in lines))
    return lines


def draw(lines: list[tuple[float, str]]) -> str:
    """Return the terminal as an SVG without fonts of the internet, whose lines appear one after the other."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    times: list[float] = []
    for seconds, line in lines:
        row = Text.from_ansi(line)
        row.truncate(WIDTH, overflow="ellipsis")
        console.print(row)
        times.append(seconds)
    svg = console.export_svg(title="openstack-prep", theme=MONOKAI, unique_id="recording")
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = svg.replace("<style>", f"<style>{APPEAR}", 1)
    return re.sub(
        r'clip-path="url\(#recording-line-(\d+)\)"',
        lambda row: f'{row[0]} style="animation: appear 0.01s {times[int(row[1])]:.1f}s backwards"',
        svg,
    )


def main() -> None:
    show = begin("recording", __doc__)
    Path(SPEC).write_text(ten_lines())
    show.prep("destroy", "--yes", SPEC)  # what an earlier recording has left
    PICTURE.write_text(draw(record(show)))
    print(PICTURE)


if __name__ == "__main__":
    main()
