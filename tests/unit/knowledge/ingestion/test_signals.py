"""What ingestion tells a program that collects: its log, its spans and its metrics, by their names."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING

import prometheus_client
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agent_memory.ingestion import IngestionError, MemoryIngestor, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator

SAID = datetime(2026, 3, 14, 12, tzinfo=UTC)
ACME = SimpleNamespace(tenant_id="acme", id="1")


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


def scraped(name: str, **labels: str) -> float:
    return prometheus_client.REGISTRY.get_sample_value(name, labels) or 0.0


async def talk(ingestor: MemoryIngestor) -> None:
    for number in range(10):
        turn = Turn(f"Shop {number} moved to Turin.", "I see.", timestamp=SAID.replace(minute=number))
        await ingestor.ingest_turn(turn, ACME)
    await ingestor.background.settle()


async def test_turns_and_summaries_are_logged_with_ids_and_without_words(
    ingestor: MemoryIngestor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await talk(ingestor)
    with pytest.raises(IngestionError):
        await ingestor.ingest_event("x", "y" * 1_000_001, "acme:1")
    assert caplog.text.count("event=episode_created") == 20
    created = next(line for line in caplog.messages if "episode_created" in line)
    for field in ("episode_id=epi-", "group_id=acme:1", "content_type=message", "latency_ms="):
        assert field in created
    told = next(line for line in caplog.messages if "summary_created" in line)
    for field in ("summary_type=window", "episodes_covered=20", "summary_id=sum-", "compression_ratio="):
        assert field in told
    failed = next(line for line in caplog.messages if "ingestion_failed" in line)
    assert "error=too_long" in failed
    assert "cause=ValidationError" in failed
    assert "Turin" not in caplog.text


async def test_spans_have_the_names_of_the_contract_and_no_words(
    exported: InMemorySpanExporter, ingestor: MemoryIngestor
) -> None:
    await talk(ingestor)
    told = exported.get_finished_spans()
    assert {"memory.ingest_turn", "memory.summarize_window"} <= {each.name for each in told}
    turn = next(each for each in told if each.name == "memory.ingest_turn")
    assert set(turn.attributes or {}) == {"embedding_enabled", "group_id", "episode_id", "latency_ms"}
    assert turn.status.status_code.name == "OK"
    assert "Turin" not in "".join(each.to_json() for each in told)


async def test_metrics_count_what_was_taken_in_and_made(ingestor: MemoryIngestor) -> None:
    names = {"content_type": "message"}
    before = scraped("focal_episodes_created_total", source="agent", **names)
    summaries = scraped("focal_summaries_created_total", summary_type="window")
    times = scraped("focal_ingestion_latency_milliseconds_count", operation="episode_create")
    await talk(ingestor)
    assert scraped("focal_episodes_created_total", source="agent", **names) == before + 10
    assert scraped("focal_summaries_created_total", summary_type="window") == summaries + 1
    assert scraped("focal_ingestion_latency_milliseconds_count", operation="episode_create") == times + 10
    assert scraped("focal_active_sessions") == 1
