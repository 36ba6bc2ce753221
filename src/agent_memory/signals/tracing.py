"""Spans, where the program traces with OpenTelemetry."""

from __future__ import annotations

import functools
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

P = ParamSpec("P")
T = TypeVar("T")

_LIBRARY: Final = "opentelemetry.trace"
_TRACER: Final = "agent_memory"
OPERATION_NAME: Final = "gen_ai.operation.name"
"""Attribute of a memory operation, by the GenAI semantic conventions of OpenTelemetry, memory spans (0.1.0)."""
STORE_ID: Final = "gen_ai.memory.store.id"
"""Attribute with the agent's name, by the same. Neither texts nor queries are ever attributes."""


class Span(Protocol):
    """What is told of something while it is done."""

    def set_attribute(self, key: str, value: Any) -> None:
        """Tell one thing of it: a number, a name or a code; never a text that was stored."""


class _NoSpan:
    """A span of a program that does not trace."""

    def set_attribute(self, key: str, value: Any) -> None:
        """Do nothing."""


_NO_SPAN: Final = _NoSpan()
_tracers: Final[dict[str, Any]] = {}
"""The provider that was asked last, and its tracer."""


@contextmanager
def span(name: str, **attributes: Any) -> Iterator[Span]:
    """Tell a tracer, if the program has one, what is done meanwhile, how long it took and whether it went well.

    An error leaves the name of its class in the span, and never its words, which may quote what was stored.

    Args:
        name: Such as `memory.ingest_turn`.
        attributes: By name; a dot in it is written as two underscores.
    """
    library = sys.modules.get(_LIBRARY)
    if library is None:
        yield _NO_SPAN
        return
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    with _tracer_of(library).start_as_current_span(
        name, attributes=named, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield current
        except BaseException as error:
            current.set_status(library.Status(library.StatusCode.ERROR, type(error).__name__))
            raise
        current.set_status(library.Status(library.StatusCode.OK))


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
