"""Names of a package that are loaded at their first use (PEP 562)."""

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

    The package imports the names for type checkers alone, indented by one level; their modules are read there.

    Args:
        package: Dotted name of the package.
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
    """Return the module of each offered name."""
    source = Path(str(sys.modules[package].__file__)).read_text(encoding="utf-8")
    imports = ((home, _NAME.findall(block or line)) for home, block, line in _IMPORT.findall(source))
    return {name: home for home, names in imports for name in names}
