"""The server for AI assistants as an extension."""

from __future__ import annotations

from openstack_prep.extensions import Command, Extension

EXTENSION = Extension(
    name="mcp",
    heading="Projects",
    commands={
        "openstack_prep.mcp.options": {
            "mcp": Command(
                "let an AI assistant check and plan, and apply what you approve (Model Context Protocol; needs [mcp])",
                {
                    "mcp": "serve the specs below this folder on standard input and output",
                    "mcp -C ~/clusters": "serve those of another folder, as a client's configuration has it",
                },
            ),
        },
    },
)
