"""Commands that a person may copy: whatever is put into one goes through base.shell, or cannot hold anything odd."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import openstack_prep

ROOT = Path(openstack_prep.__file__).parent
COMMAND = re.compile(
    r"(^|[:;`(] |&& |\| )"
    r"(openstack-prep|openstack|kubectl|oc|export|unset|chmod|curl|openssl|podman|helm|ssh|rke (up|check|mesh)) "
)
QUOTED = ("shell.quote", "shell.join", "shlex.quote", "AGAIN.format", "full")  # shlex: in files that are written
SAFE = {
    # quoted where they are made, or by whoever calls
    *(
        "path.client",
        "path.attach",
        "path.repair",
        "command",
        "path",
        "paths",
        "spec",
        "url",
        "server",
        "again",
        "quoted",
        "trial",
        "words",
        "self.spec",
        "reason",  # of what ssh printed, in front of the command
    ),
    *("kubeconfig", "kubectl", "helm", "file", "fetch", "patch", "name", "namespace", "verb", "context", "at_target"),
    # addresses, numbers, ids of OpenStack, and names that a spec restricts to letters, digits and hyphens
    *("path.address", "other", "port", "address", "number", "chart", "changes", "here", "there", "secret"),
    *(
        "cluster.name",
        "service.name",
        "service.namespace",
        "a.name",
        "b.name",
        "target.name",
        "source.name",
        "infra_id",
        "record.address",
    ),
    *("context.cloud.user_id", "context.cloud.project_id", "network.id", "router.id", "ROLE"),
    *(
        "__version__",
        "INSTALL",
        "folders[cluster.name]",
        "home.name",
        "servers",
        "len(nodes) - servers",
        "target.version",
        "chosen",
        "jump",
        "kind",
        "kind.kind",
    ),
    *("each.metallb.namespace", "each.cilium.namespace", "METALLB_CHART", "POOLS", "SERVICES", "BEFORE", "OF", "PATH"),
}


def interpolated(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield what f-strings with a command put after its first word."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        text = ""
        for part in node.values:
            if isinstance(part, ast.Constant):
                text += str(part.value)
            elif isinstance(part, ast.FormattedValue):
                last = text.rpartition("  # ")[0] or text
                if COMMAND.search(last) and " # " not in text:
                    yield node.lineno, ast.unparse(part.value)
                text += "{}"


def test_what_is_put_into_a_command_is_quoted() -> None:
    odd = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted(ROOT.rglob("*.py"))
        for line, text in interpolated(ast.parse(path.read_text(encoding="utf-8")))
        if text not in SAFE and not text.startswith(QUOTED)
    ]
    assert odd == []
