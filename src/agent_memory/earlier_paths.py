"""Earlier import paths of packages that have moved, until version 1.0."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

from agent_memory.earlier_name_tables import MODULES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType


class EarlierPathFinder:
    """Finds a module by an earlier name; loads the present one.

    A finder and a loader by their methods alone: `importlib.abc` takes 13 ms to import.
    """

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the protocol's
        target: ModuleType | None = None,  # noqa: ARG002 - the protocol's
    ) -> ModuleSpec | None:
        """Return a spec for an earlier name, or None."""
        loader: Any = self  # a loader by its methods
        return ModuleSpec(fullname, loader, is_package=True) if _get_present_name(fullname) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the present module."""
        module = import_module(str(_get_present_name(spec.name)))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the spec of the present module, which is loaded already."""
        if module.__spec__ is not None and isinstance(module.__spec__.loader, EarlierPathFinder):
            module.__spec__ = module.__spec__.loader_state


def _get_present_name(name: str) -> str | None:
    if not name.startswith("agent_memory."):
        return None
    for earlier, present in MODULES.items():
        if f"{name}.".startswith(f"{earlier}."):
            return present + name[len(earlier) :]
    return None


def install() -> None:
    """Install the finder of earlier names.

    It comes first: the path of a present package would load the modules below it twice.
    """
    if not any(isinstance(finder, EarlierPathFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, EarlierPathFinder())
