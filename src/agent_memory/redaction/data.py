"""Reads the pattern files of this package. Decides nothing."""

from __future__ import annotations

from importlib import resources
from typing import Any

import yaml


def read_patterns(name: str) -> dict[str, Any]:
    """Return the content of `patterns/<name>.yaml`."""
    text = (resources.files("agent_memory.redaction") / "patterns" / f"{name}.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - safe
    return loaded
