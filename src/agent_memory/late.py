"""Names that are loaded, and patterns that are compiled, at first use."""

from __future__ import annotations

import re
import sys
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, AnyStr, Final, cast

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


class LatePattern:
    """Pattern that is compiled at its first use.

    Most processes use few of the patterns that they import.

    Args:
        pattern: Text of the regular expression.
        flags: Flags of `re.compile`, none by default.
    """

    def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
        self._compile = partial(re.compile, pattern, flags)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._compile(), name)  # `re` keeps the compiled pattern
        setattr(self, name, value)
        return value


def compile_late(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled at its first use."""
    return cast("re.Pattern[AnyStr]", LatePattern(pattern, flags))
