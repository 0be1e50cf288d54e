"""The error of a YAML text that has more than is read."""

from __future__ import annotations

import yaml


class Excess(yaml.MarkedYAMLError):
    """The text may be YAML, but it is nested too deeply, or has too many parts."""
