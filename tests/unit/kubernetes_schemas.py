"""kubernetes-validate, with schemas that are read once: by itself it reads several megabytes for each object."""

from __future__ import annotations

import functools
from typing import Any

from kubernetes_validate import utils

utils.schema_contents = functools.cache(utils.schema_contents)


def validate(item: Any, release: str) -> None:
    """Validate an object by the schemas of a release of Kubernetes, without unknown keys."""
    utils.validate(item, release, strict=True)
