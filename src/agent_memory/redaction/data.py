"""Reads the pattern files of this package. Decides nothing."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Any

from agent_memory.yaml_reading import load_own_yaml


@functools.cache
def read_patterns(name: str) -> dict[str, Any]:
    """Return the content of `patterns/<name>.yaml`."""
    text = (resources.files("agent_memory.redaction") / "patterns" / f"{name}.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = load_own_yaml(text)
    return loaded
