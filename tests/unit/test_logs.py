"""Logs, metrics and spans for the program that runs this package."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import prometheus_client
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agent_memory.logs import CounterMetric, GaugeMetric, HistogramMetric, get_logger, operation, span
from agent_memory.memories import FileStorage
from agent_memory.memory import MemoryService
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support import FrozenClock


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


def scraped(metric: Any) -> str:
    registry = prometheus_client.CollectorRegistry()
    registry.register(metric)
    return prometheus_client.generate_latest(registry).decode()


def test_a_span_tells_what_was_done_and_that_it_went_well(exported: InMemorySpanExporter) -> None:
    with span("memory.ingest_turn", group_id="acme:1") as current:
        current.set_attribute("episode_id", "epi-0123456789ab")
    (told,) = exported.get_finished_spans()
    assert (told.name, told.status.status_code.name) == ("memory.ingest_turn", "OK")
    assert dict(told.attributes or {}) == {"group_id": "acme:1", "episode_id": "epi-0123456789ab"}


def test_what_is_told_within_a_span_belongs_to_it_and_what_comes_behind_does_not(
    exported: InMemorySpanExporter,
) -> None:
    with span("memory.ingest_turn"), span("memory.extract_entities"):
        pass
    with pytest.raises(ValueError, match="lost"), span("memory.ingest_event"):
        raise ValueError("lost")
    inner, outer, behind = exported.get_finished_spans()
    assert inner.parent is not None
    assert inner.parent.span_id == outer.get_span_context().span_id
    assert (outer.parent, behind.parent, trace.get_current_span()) == (None, None, trace.INVALID_SPAN)


def test_of_an_error_a_span_has_the_class_and_none_of_its_words(exported: InMemorySpanExporter) -> None:
    with pytest.raises(ValueError, match="hidden"), span("memory.ingest_turn"):
        raise ValueError("hidden words")
    (told,) = exported.get_finished_spans()
    assert (told.status.status_code.name, told.status.description, told.events) == ("ERROR", "ValueError", ())
    assert "hidden" not in told.to_json()


async def test_operations_on_memories_are_told_by_the_names_of_the_convention(
    exported: InMemorySpanExporter, root: Path, clock: FrozenClock
) -> None:
    settings = ServiceSettings(storage_root=str(root), embedder="none")
    service = MemoryService(FileStorage("bob", root, settings=settings, clock=clock), settings, clock=clock)
    stored = await service.store("The kettle is in the kitchen")
    await service.update(stored.memory.id, {"tags": ["tea"]})
    await service.search("kettle")
    await service.forget(stored.memory.id)
    await service.close()
    told = exported.get_finished_spans()
    names = ["create_memory", "update_memory", "search_memory", "delete_memory"]
    assert [each.name for each in told] == names
    assert [dict(each.attributes or {}) for each in told] == [
        {"gen_ai.operation.name": name, "gen_ai.memory.store.id": "bob"} for name in names
    ]
    assert "kettle" not in "".join(each.to_json() for each in told)


def test_metrics_are_scraped_by_their_names_and_unknown_labels_are_other() -> None:
    counter = CounterMetric("focal_test_things", "Things.", {"kind": ("a", "b")})
    counter.add(kind="a")
    counter.add(2, kind="made up by a model")
    counter.add(0, kind="b")
    gauge, histogram = (
        GaugeMetric("focal_test_open", "Open."),
        HistogramMetric("focal_test_ms", "Time.", {"operation": ("x",)}),
    )
    gauge.set(3)
    histogram.observe(7.5, operation="x")
    told = "".join(scraped(each.collector) for each in (counter, gauge, histogram))
    assert 'focal_test_things_total{kind="a"} 1.0' in told
    assert 'focal_test_things_total{kind="other"} 2.0' in told
    assert 'kind="b"' not in told
    assert "focal_test_open 3.0" in told
    assert 'focal_test_ms_bucket{le="10.0",operation="x"} 1.0' in told
    for each in (counter, gauge, histogram):
        prometheus_client.REGISTRY.unregister(each.collector)


def test_a_program_that_collects_nothing_imports_nothing() -> None:
    script = (
        "import asyncio, sys\n"
        "from agent_memory.logs import CounterMetric, GaugeMetric, HistogramMetric, operation, span\n"
        "class Of:\n"
        "    agent_id = 'bob'\n"
        "    @operation('search_memory')\n"
        "    async def search(self, words): return words\n"
        "with span('x', a=1) as current: current.set_attribute('b', 2)\n"
        "CounterMetric('c', 'c', {'k': ('a',)}).add(k='a'); GaugeMetric('g', 'g').set(1)\n"
        "HistogramMetric('h', 'h').observe(1)\n"
        "assert asyncio.run(Of().search('tea')) == 'tea'\n"
        "assert not [name for name in sys.modules if name.startswith(('opentelemetry', 'prometheus_client'))]\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@dataclass
class Of:
    """What has an operation."""

    agent_id: str = "bob"

    @operation("search_memory")
    async def search(self, words: str) -> str:
        """Return the words."""
        return words


def test_an_operation_keeps_its_name_and_words() -> None:
    assert (Of.search.__name__, Of.search.__doc__) == ("search", "Return the words.")


def test_what_is_said_once_is_said_once_per_process_and_content(caplog: pytest.LogCaptureFixture) -> None:
    log = get_logger("agent_memory.test_logs")
    for number in (1, 1, 2):
        log.warning_once("odd", number=number)
        get_logger("agent_memory.test_logs").warning_once("odd", number=number)
    assert [record.getMessage() for record in caplog.records] == ["event=odd number=1", "event=odd number=2"]
