"""Logs, metrics and spans for the program that runs this package.

Logs go to the standard library's logging, which hosts configure; structlog's own default prints to stdout, where a host
may write JSON. Metrics and spans go to Prometheus and OpenTelemetry if the program has imported them; otherwise they
cost one lookup. None of the three libraries is imported at start: structlog takes 40 ms, and most sessions log nothing.
"""

from __future__ import annotations

import functools
import logging
import sys
from typing import TYPE_CHECKING, Any, ClassVar, Final, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Mapping

P = ParamSpec("P")
T = TypeVar("T")

OTHER: Final = "other"
"""Label for values that are not in its list, so that foreign words make no series."""
OPERATION_NAME: Final = "gen_ai.operation.name"
"""Attribute of a memory operation, by the GenAI semantic conventions of OpenTelemetry, memory spans (0.1.0)."""
STORE_ID: Final = "gen_ai.memory.store.id"
"""Attribute with the agent's name, by the same conventions. Texts and queries are never attributes."""
_PROMETHEUS: Final = "prometheus_client"
_TRACING: Final = "opentelemetry.trace"
_CONTEXT: Final = "opentelemetry.context"
"""Imported by `opentelemetry.trace`."""
_TRACER: Final = "agent_memory"
_BUCKETS: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0)
"""Milliseconds."""
_logged_once: Final[set[str]] = set()
_tracers: Final[dict[str, Any]] = {}
"""The last provider, and its tracer."""


class EventLogger:
    """Logger of events with IDs, counts and codes, never stored texts."""

    def __init__(self, name: str) -> None:
        self._name = name

    def warning(self, event: str, **fields: Any) -> None:
        """Log an event that a person may have to check."""
        self._get_structlog().warning(event, **fields)

    def warning_once(self, event: str, **fields: Any) -> None:
        """Log a warning once per process.

        Hosts try each module's mount before the real one.
        """
        line = repr((self._name, event, sorted(fields.items())))
        if line not in _logged_once:
            _logged_once.add(line)
            self.warning(event, **fields)

    def info(self, event: str, **fields: Any) -> None:
        """Log an event for information."""
        self._get_structlog().info(event, **fields)

    def _get_structlog(self) -> Any:
        import structlog

        return structlog.wrap_logger(
            logging.getLogger(self._name),
            processors=[structlog.processors.LogfmtRenderer(key_order=["event"]), _escape_line],
            wrapper_class=structlog.stdlib.BoundLogger,
        )


def _escape_line(_logger: object, _method: str, line: Any) -> str:
    """Return a line with control and invisible characters escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)


def get_logger(name: str) -> EventLogger:
    """Return the logger of a module."""
    return EventLogger(name)


class _LabelledMetric:
    """One metric, registered with the program's registry at its first use.

    Args:
        name: Name in Prometheus, without `_total`.
        help_: Description of the metric, as a sentence.
        labels: Allowed values by label.

    Attributes:
        name, help, labels: Values of the arguments.
        collector: Metric of the program's registry; None before the first use.
    """

    kind: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, name: str, help_: str, labels: Mapping[str, Collection[str]] | None = None) -> None:
        self.name, self.help, self.labels = name, help_, dict(labels or {})
        self.collector: Any = None
        self._series: dict[tuple[str, ...], Any] = {}

    def _get_series(self, labels: Mapping[str, str]) -> Any:
        """Return Prometheus's series of these labels, None without Prometheus."""
        library = sys.modules.get(_PROMETHEUS)
        if library is None:
            return None
        if self.collector is None:
            self.collector = getattr(library, self.kind)(self.name, self.help, [*self.labels], **self.options)
        if not self.labels:
            return self.collector
        # Cached: the library's lookup of a series costs more than counting.
        values = tuple([labels[key] if labels[key] in allowed else OTHER for key, allowed in self.labels.items()])
        if values not in self._series:
            self._series[values] = self.collector.labels(*values)
        return self._series[values]


class CounterMetric(_LabelledMetric):
    """Number of events; `NAME_total` in Prometheus."""

    kind = "Counter"

    def add(self, count: int = 1, **labels: str) -> None:
        """Add to the count; unlisted labels count as `other`."""
        series = self._get_series(labels) if count else None
        if series is not None:
            series.inc(count)


class GaugeMetric(_LabelledMetric):
    """Current number."""

    kind = "Gauge"

    def set(self, value: float, **labels: str) -> None:
        """Set the current number."""
        series = self._get_series(labels)
        if series is not None:
            series.set(value)


class HistogramMetric(_LabelledMetric):
    """Durations in milliseconds."""

    kind = "Histogram"
    options: ClassVar[Mapping[str, Any]] = {"buckets": _BUCKETS}

    def observe(self, milliseconds: float, **labels: str) -> None:
        """Add one duration."""
        series = self._get_series(labels)
        if series is not None:
            series.observe(milliseconds)


class ActiveSpan(Protocol):
    """Span of OpenTelemetry that has not ended."""

    def set_attribute(self, key: str, value: Any) -> None:
        """Set a number, a name or a code; never a stored text."""

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Set several attributes, which takes less time."""


class _NoSpan:
    """Span of a program that does not trace."""

    def set_attribute(self, key: str, value: Any) -> None:
        """Do nothing."""

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Do nothing."""


_NO_SPAN: Final = _NoSpan()


class span:  # noqa: N801 - it is called as a function
    """Span around a block, if the program traces: `with span("memory.ingest_turn") as active:`.

    It is the current span of the block. An error leaves the name of its class in the span, never its message, which may
    quote a stored text. A class with two methods takes less time than the generators of `start_as_current_span`.

    Args:
        name: Name such as `memory.ingest_turn`.
        attributes: Attributes by name, with two underscores for a dot.
    """

    __slots__ = ("_attributes", "_library", "_name", "_span", "_token")

    def __init__(self, name: str, **attributes: Any) -> None:
        self._name, self._attributes = name, attributes
        self._library = sys.modules.get(_TRACING)

    def __enter__(self) -> ActiveSpan:
        """Start the span, if the program traces."""
        library = self._library
        if library is None:
            return _NO_SPAN
        attributes = {key.replace("__", "."): value for key, value in self._attributes.items()}
        active: ActiveSpan = _get_tracer(library).start_span(self._name, attributes=attributes)
        self._token = sys.modules[_CONTEXT].attach(library.set_span_in_context(active))
        self._span: Any = active
        return active

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the span."""
        library = self._library
        if library is None:
            return
        sys.modules[_CONTEXT].detach(self._token)
        if kind is None:
            self._span.set_status(library.StatusCode.OK)
        else:
            self._span.set_status(library.StatusCode.ERROR, kind.__name__)
        self._span.end()


def _get_tracer(library: Any) -> Any:
    """Return our tracer of the program's provider.

    Cached, because the lookup costs as much as the span.
    """
    provider = library.get_tracer_provider()
    if _tracers.get("provider") is not provider:
        _tracers.update(provider=provider, tracer=provider.get_tracer(_TRACER))
    return _tracers["tracer"]


def operation(name: str) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """Return a decorator that traces a method as a memory operation.

    Args:
        name: Operation such as `search_memory`; the method's object has `agent_id`.
    """

    def wrap(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        @functools.wraps(method)
        async def trace_call(*args: P.args, **kwargs: P.kwargs) -> T:
            if _TRACING not in sys.modules:
                return await method(*args, **kwargs)
            agent_id = getattr(args[0], "agent_id", "")
            with span(name, **{OPERATION_NAME: name, STORE_ID: agent_id}):
                return await method(*args, **kwargs)

        return trace_call

    return wrap
