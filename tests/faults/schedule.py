"""One number gives one schedule: the same rules, whenever and wherever it is asked for."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from tests.devcloud.faults import SHAPES, Fault

KINDS = (
    *("delay", "refuse", "reset", "lost", "cut", "drip", "late"),
    *("409", "412", "429", "500", "502", "503", "504", "401", "stale"),
    *SHAPES,
)
"""``lost``: the work is done, and the connection ends without an answer."""
SERVICES = (*["keystone"] * 3, *["neutron"] * 4, *["nova"] * 2, "glance", "heat", "swift-proxy")
METHODS = ("GET", "GET", "POST", "POST", "PUT", "PATCH", "DELETE")
PAGE = "<html><body><h1>{0}</h1>\nThe server is not available.\n</body></html>\n"
LOGIN = "/auth/tokens$"


@dataclass(frozen=True)
class Schedule:
    """What the cloud does in one trial."""

    number: int
    rules: tuple[Fault, ...]

    def __str__(self) -> str:
        return "\n".join(f"        {_text(rule)}" for rule in self.rules)


def make(number: int, without: Collection[str] = ()) -> Schedule:
    """Return the schedule of a number; kinds that are left out only take their rules away."""
    chance = random.Random(number)
    drawn = [_draw(chance) for _ in range(chance.randint(4, 12))]
    return Schedule(number, tuple(rule for kind, rule in drawn if kind not in without))


def _draw(chance: random.Random) -> tuple[str, Fault]:
    """Draw everything, also what this kind does not use: each number means the same rules for long."""
    kind, service, method = chance.choice(KINDS), chance.choice(SERVICES), chance.choice(METHODS)
    skip, times = chance.choice((0, 0, 0, 1, 2, 4, 8)), chance.choice((1, 1, 1, 2, 3, 5))
    seconds, status = round(chance.uniform(0.2, 3), 1), chance.choice((502, 503, 504))
    if kind == "stale":
        method = "GET"
    if kind in ("409", "412") and method == "GET":
        method = "POST" if kind == "409" else "PUT"
    if method == "PATCH" and service not in ("keystone", "glance", "heat"):
        method = "PUT"
    if service == "swift-proxy" and method in ("PATCH", "DELETE"):
        method = "POST"
    where: dict[str, Any] = {"service": service, "method": method, "skip": skip, "times": times}
    if kind in ("401", "409", "412"):
        where["path_regex"] = f"^(?!.*{LOGIN})"  # a login has no token, and makes nothing
    return kind, Fault(**where, **_effect(kind, service, seconds, status))


def _effect(kind: str, service: str, seconds: float, status: int) -> dict[str, Any]:
    if kind == "delay":
        return {"delay": seconds}
    if kind in ("refuse", "drip"):
        return {"effect": kind, "delay": seconds}
    if kind == "lost":
        return {"drop_answer": True}
    if kind == "late":
        return {"effect": kind, **_answer(status, service)}
    if kind.isdigit():
        return _answer(int(kind), service)
    return {"effect": kind}


def _answer(status: int, service: str) -> dict[str, Any]:
    """Return an answer as the service gives it, or a load balancer before it."""
    if status in (502, 503, 504):
        return {"status": status, "headers": {"Content-Type": "text/html"}, "body": PAGE.format(status)}
    headers = {"Content-Type": "application/json"}
    if status == 429:
        headers["Retry-After"] = "1"
    if status == 401:
        headers["WWW-Authenticate"] = 'Keystone uri="http://127.0.0.1"'
    return {"status": status, "headers": headers, "body": json.dumps(BODIES[service](status))}


BODIES: dict[str, Callable[[int], object]] = {
    "keystone": lambda status: {"error": {"code": status, "title": "Fault", "message": "by the schedule"}},
    "nova": lambda status: {"computeFault": {"code": status, "message": "by the schedule"}},
    "neutron": lambda status: {"NeutronError": {"type": "Fault", "message": "by the schedule", "detail": ""}},
    "glance": lambda status: {"message": "by the schedule", "code": f"{status} Fault", "title": "Fault"},
    "heat": lambda status: {"code": status, "title": "Fault", "error": {"message": "by the schedule", "type": "Fault"}},
    "swift-proxy": lambda status: {"message": "by the schedule"},
}


def _text(rule: Fault) -> str:
    what = rule.effect or ("lost" if rule.drop_answer else "")
    words = [what, str(rule.status or ""), f"{rule.delay} s" if rule.delay else ""]
    return f"{rule.service} {rule.method}: {' '.join(filter(None, words))}, {rule.times} times after {rule.skip}"
