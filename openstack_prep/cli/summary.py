"""The end of an apply, for a person: what exists now, its addresses, the files written, and the next command."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from openstack_prep.base.style import Style, printable
from openstack_prep.core.model import Action, Result
from openstack_prep.core.plan import Report

ACRONYMS = {"ip": "IP", "rke": "RKE"}
INSTALL = "-- openshift-install create cluster"


def summary(report: Report, spec: Path, style: Style) -> str:
    """Return the lines below the counts; none when nothing was changed, or when something failed."""
    if report.failed or report.skipped or not report.changed:
        return ""
    there = [each for each in report.results if each.observed and each.step.action is not Action.DELETE]
    counts = Counter(each.step.key.kind for each in there)
    lines = {
        "exists": ", ".join(f"{number} {_words(kind, number)}" for kind, number in counts.items()),
        "addresses": ", ".join(_addresses(there)),
        "written": ", ".join(dict.fromkeys(_files(report))),
    }
    texts = [style.wrapped(f"{f'{name}:':<11}{printable(text)}", 11) for name, text in lines.items() if text]
    commands = [f"{'next:':<11}{command}" for command in dict.fromkeys(_next(report, spec))]  # whole: to be pasted
    observed = (each.observed for each in report.changed if each.observed)
    needs = [f"{'needs:':<11}{each.outputs['needs']}" for each in observed if "needs" in each.outputs]
    return "\n".join([*texts, *commands, *needs])


def _words(kind: str, number: int) -> str:
    """Return "floating IPs" for ``floating_ip``."""
    words = " ".join(ACRONYMS.get(word, word) for word in kind.split("_"))
    if words.endswith("s"):  # one resource is several of them, such as the rules of a group
        return f"{'set' if number == 1 else 'sets'} of {words}"
    if number == 1:
        return words
    return f"{words[:-1]}ies" if words.endswith("y") else f"{words}s"


def _addresses(there: list[Result]) -> Iterator[str]:
    """Yield the floating IPs by name."""
    for each in there:
        address = each.observed.outputs.get("address") if each.observed else None
        if address and each.step.key.kind == "floating_ip":
            yield f"{each.step.key.name} {address}"


def _files(report: Report) -> Iterator[str]:
    for each in report.changed:
        path = each.observed.outputs.get("path") if each.observed and each.step.action is not Action.DELETE else None
        if path:
            near = os.path.relpath(path)
            yield path if near.startswith("..") else near


def _next(report: Report, spec: Path) -> Iterator[str]:
    """Yield the commands that clusters tell themselves, and the one that uses an install-config."""
    for each in report.changed:
        if each.step.key.kind == "install_config" and each.step.action is not Action.DELETE:
            yield f"openstack-prep ipi --spec {shlex.quote(str(spec))} {INSTALL}"
        elif each.observed and "next" in each.observed.outputs:
            yield each.observed.outputs["next"]
