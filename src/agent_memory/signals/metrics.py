"""Counters, gauges and histograms, where the program collects with Prometheus; their labels are closed lists."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_LIBRARY: Final = "prometheus_client"
OTHER: Final = "other"
"""What a label says that is in no list: a word of somebody else must not make a series of its own."""
_BUCKETS: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0)
"""Milliseconds."""


class _Metric:
    """One metric; it is known to the program's registry from the first time it is told of.

    Args:
        name: As it is scraped, without `_total`.
        help_: What it counts, as a sentence.
        labels: By name, the values that each may have.

    Attributes:
        name, help, labels: As given.
        collector: What the program's registry keeps; None before that.
    """

    kind: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, name: str, help_: str, labels: Mapping[str, Collection[str]] | None = None) -> None:
        self.name, self.help, self.labels = name, help_, dict(labels or {})
        self.collector: Any = None
        self._kept: dict[tuple[str, ...], Any] = {}

    def _of(self, given: Mapping[str, str]) -> Any:
        """Return what Prometheus keeps of these labels; None where the program has no Prometheus."""
        library = sys.modules.get(_LIBRARY)
        if library is None:
            return None
        if self.collector is None:
            self.collector = getattr(library, self.kind)(self.name, self.help, [*self.labels], **self.options)
        if not self.labels:
            return self.collector
        # asking the library for what it keeps of some labels costs more than to count
        values = tuple([given[key] if given[key] in allowed else OTHER for key, allowed in self.labels.items()])
        if values not in self._kept:
            self._kept[values] = self.collector.labels(*values)
        return self._kept[values]


class Counter(_Metric):
    """How often something was done; scraped as `NAME_total`."""

    kind = "Counter"

    def add(self, count: int = 1, **labels: str) -> None:
        """Count; labels that are in no list count as `other`."""
        metric = self._of(labels) if count else None
        if metric is not None:
            metric.inc(count)


class Gauge(_Metric):
    """How many there are now."""

    kind = "Gauge"

    def set(self, value: float, **labels: str) -> None:
        """Say how many there are."""
        metric = self._of(labels)
        if metric is not None:
            metric.set(value)


class Histogram(_Metric):
    """How long something took, in milliseconds."""

    kind = "Histogram"
    options: ClassVar[Mapping[str, Any]] = {"buckets": _BUCKETS}

    def observe(self, milliseconds: float, **labels: str) -> None:
        """Note how long it took once."""
        metric = self._of(labels)
        if metric is not None:
            metric.observe(milliseconds)
