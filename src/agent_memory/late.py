"""Names that a package offers and loads when they are first asked for (PEP 562)."""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_IMPORT: Final = re.compile(r"^    from (agent_memory\.[\w.]+) import (?:\(([^()]*)\)|(.+))$", re.MULTILINE)
_NAME: Final = re.compile(r"\w+")


def offer(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package.

    The package imports the names for type checkers alone, each line by one level; where each comes from is read there.

    Args:
        package: Name of the package.
    """

    def load(name: str) -> object:
        home = _find_homes(package).get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted({*vars(sys.modules[package]), *_find_homes(package)})


@cache
def _find_homes(package: str) -> Mapping[str, str]:
    """Return the module of each name that a package offers."""
    source = Path(str(sys.modules[package].__file__)).read_text(encoding="utf-8")
    found = ((home, _NAME.findall(several or single)) for home, several, single in _IMPORT.findall(source))
    return {name: home for home, names in found for name in names}
