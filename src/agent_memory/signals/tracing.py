"""Spans, where the program traces with OpenTelemetry."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

P = ParamSpec("P")
T = TypeVar("T")

_LIBRARY: Final = "opentelemetry.trace"
_CONTEXT: Final = "opentelemetry.context"
"""Imported by the former."""
_TRACER: Final = "agent_memory"
OPERATION_NAME: Final = "gen_ai.operation.name"
"""Attribute of a memory operation, by the GenAI semantic conventions of OpenTelemetry, memory spans (0.1.0)."""
STORE_ID: Final = "gen_ai.memory.store.id"
"""Attribute with the agent's name, by the same. Neither texts nor queries are ever attributes."""


class Span(Protocol):
    """What is told of something while it is done."""

    def set_attribute(self, key: str, value: Any) -> None:
        """Tell one thing of it: a number, a name or a code; never a text that was stored."""

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Tell several at once, which takes less time."""


class _NoSpan:
    """A span of a program that does not trace."""

    def set_attribute(self, key: str, value: Any) -> None:
        """Do nothing."""

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Do nothing."""


_NO_SPAN: Final = _NoSpan()
_tracers: Final[dict[str, Any]] = {}
"""The provider that was asked last, and its tracer."""


class span:  # noqa: N801 - it is called as a function
    """Tell a tracer, if the program has one, what is done meanwhile, how long it took and whether it went well.

    `with span("memory.ingest_turn") as told:`; what is told is the current span meanwhile. An error leaves the name of
    its class in the span, and never its words, which may quote what was stored. A class of two methods takes less time
    than the generators of `start_as_current_span`.

    Args:
        name: Such as `memory.ingest_turn`.
        attributes: By name; a dot in it is written as two underscores.
    """

    __slots__ = ("_attributes", "_library", "_name", "_span", "_token")

    def __init__(self, name: str, **attributes: Any) -> None:
        self._name, self._attributes = name, attributes
        self._library = sys.modules.get(_LIBRARY)

    def __enter__(self) -> Span:
        """Begin the span, if the program traces."""
        library = self._library
        if library is None:
            return _NO_SPAN
        named = {key.replace("__", "."): value for key, value in self._attributes.items()}
        begun: Span = _tracer_of(library).start_span(self._name, attributes=named)
        self._token = sys.modules[_CONTEXT].attach(library.set_span_in_context(begun))
        self._span: Any = begun
        return begun

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End it."""
        library = self._library
        if library is None:
            return
        sys.modules[_CONTEXT].detach(self._token)
        if kind is None:
            self._span.set_status(library.StatusCode.OK)
        else:
            self._span.set_status(library.StatusCode.ERROR, kind.__name__)
        self._span.end()


def _tracer_of(library: Any) -> Any:
    """Return our tracer of the program's provider; asking for it anew costs as much as the span."""
    provider = library.get_tracer_provider()
    if _tracers.get("provider") is not provider:
        _tracers.update(provider=provider, tracer=provider.get_tracer(_TRACER))
    return _tracers["tracer"]


def operation(name: str) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """Return what has each call of a method told as a memory operation, such as `search_memory`.

    The object the method is of has `agent_id`.
    """

    def wrap(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        @functools.wraps(method)
        async def told(*args: P.args, **kwargs: P.kwargs) -> T:
            if _LIBRARY not in sys.modules:
                return await method(*args, **kwargs)
            agent_id = getattr(args[0], "agent_id", "")
            with span(name, **{OPERATION_NAME: name, STORE_ID: agent_id}):
                return await method(*args, **kwargs)

        return told

    return wrap
