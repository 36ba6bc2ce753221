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

_IMPORT: Final = re.compile(r"^from (agent_memory\.[\w.]+) import (\w+) as \2$", re.MULTILINE)


def offer(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package, `__all__` included.

    The stub of the package, `__init__.pyi`, imports each name as `import Name as Name` on a line of its own. The
    modules are read from these lines, as type checkers read them.

    Args:
        package: Dotted name of the package.
    """

    def load(name: str) -> object:
        homes = _find_homes(package)
        if name != "__all__" and name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = sorted(homes) if name == "__all__" else getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted({*vars(sys.modules[package]), *_find_homes(package)})


@cache
def _find_homes(package: str) -> Mapping[str, str]:
    """Return the module of each offered name."""
    stub = Path(str(sys.modules[package].__file__)).with_suffix(".pyi")
    source = stub.read_text(encoding="utf-8")
    return {name: home for home, name in _IMPORT.findall(source)}


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
