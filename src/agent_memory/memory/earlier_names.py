"""`EarlierNames`: earlier names of the service's parts, until 1.0."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from agent_memory.earlier_name_tables import SERVICE_NAMES, SERVICE_PARTS

if TYPE_CHECKING:
    from collections.abc import Mapping


class _EarlierPart:
    """Part of a service under its earlier name."""

    def __init__(self, service: EarlierNames, paths: Mapping[str, str]) -> None:
        self._service, self._paths = service, paths

    def __getattr__(self, name: str) -> Any:
        if name not in self._paths:
            raise AttributeError(f"no attribute {name!r}; see docs/reference/python.md")
        return attrgetter(self._paths[name])(self._service)


class EarlierNames:
    """Earlier names of a service's parts, for programs of other people."""

    if not TYPE_CHECKING:  # a type checker would take it for every name there is

        def __getattr__(self, part: str) -> Any:
            if part in SERVICE_PARTS:
                return attrgetter(SERVICE_PARTS[part])(self)
            if part not in SERVICE_NAMES:
                raise AttributeError(f"{type(self).__name__!r} has no attribute {part!r}")
            return _EarlierPart(self, SERVICE_NAMES[part])
