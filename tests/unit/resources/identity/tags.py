"""The tags of one project, changed one by one as by Keystone."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import requests_mock

from tests.unit.conftest import IDENTITY


class Tags:
    """A project that Keystone shows and whose tags change; ``undone`` are changes that another program undoes.

    Of changes of the tags in ``lost``, the answer is one of a proxy, although they are done.
    """

    def __init__(self, services: requests_mock.Mocker, project: dict[str, Any]) -> None:
        self.project = project
        self.sent: list[tuple[str, str]] = []
        self.undone: list[str] = []
        self.lost: list[str] = []
        services.get(f"{IDENTITY}/projects/{project['id']}", json=lambda *_: {"project": self.project})
        one = re.compile(f"^{IDENTITY}/projects/{project['id']}/tags/")
        services.put(one, text=self._change, status_code=201)
        services.delete(one, text=self._change, status_code=204)

    def _change(self, request: Any, context: Any) -> str:
        tag = unquote(request.path.rpartition("/")[2])
        self.sent.append((request.method, tag))
        if tag in self.lost:
            self.lost.remove(tag)
            context.status_code = 504
        elif request.method == "PUT" and tag in self.project["tags"]:
            context.status_code = 400
        if tag in self.undone:
            self.undone.remove(tag)
        else:
            others = [each for each in self.project["tags"] if each != tag]
            self.project["tags"] = [*others, tag] if request.method == "PUT" else others
        return ""
