"""A package that cannot be loaded, as if it were not installed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class AbsentPackage:
    """Finder for which one package and its modules do not exist; put it first in `sys.meta_path`."""

    def __init__(self, package: str) -> None:
        loaded = [name for name in sys.modules if f"{name}.".startswith(f"{package}.")]
        assert not loaded, f"loaded before it could be absent: {loaded}"
        self._package = package

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if f"{name}.".startswith(f"{self._package}."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None
