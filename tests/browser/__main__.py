"""Take the picture of a report for the docs."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.browser import started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("image", type=Path)
    parser.add_argument("--size", default="1200x1500", metavar="WIDTHxHEIGHT")
    parser.add_argument("--dark", action="store_true")
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    with started() as browser:
        scheme = "dark" if options.dark else "light"
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        page.goto(options.report.resolve().as_uri())
        page.screenshot(path=options.image)


if __name__ == "__main__":
    main()
