"""Pattern files: words and patterns of a package, by language or topic."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Any, Final

import yaml

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@functools.cache
def load_patterns(package: str, name: str) -> dict[str, Any]:
    """Return the mapping of a package's pattern files.

    They are loaded without a bound, since they are part of this distribution.

    Args:
        package: Dotted name of the package.
        name: First part of the names: `patterns/<name>.yaml` and `patterns/<name>.<part>.yaml`.
    """
    patterns: dict[str, Any] = {}
    for file in (resources.files(package) / "patterns").iterdir():
        if file.name.partition(".")[0] == name:
            text = file.read_text(encoding="utf-8")
            patterns |= yaml.load(text, Loader=_LOADER)  # noqa: S506 - the safe loader, in a variable
    return patterns
