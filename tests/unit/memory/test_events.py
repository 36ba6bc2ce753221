"""Events and the audit log: what the table says, and never a word of what a memory says."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import StorageError
from agent_memory.memory import EVENTS, AuditLog
from agent_memory.memory.events import fingerprint, payload
from agent_memory.models import Observation
from scripts.events_page import document

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.memory import MemoryService
    from tests.support import FrozenClock
    from tests.unit.memory.conftest import Listener

SPOKEN = "xylophone"
COMMON = {"agent_id", "session_id", "timestamp"}


async def live(service: MemoryService, listener: Listener, folder: Path, clock: FrozenClock) -> None:
    """Have every event happen that a service emits, with one word in every text, query and metadata."""
    caller = listener.caller
    first = (await service.store({"content": f"{SPOKEN} one", "metadata": {"k": SPOKEN}}, caller)).memory
    second = (await service.store({"content": f"{SPOKEN} two", "supersedes": first.id}, caller)).memory
    third = (await service.store({"content": f"{SPOKEN} three"}, caller)).memory
    await service.store(f"The {SPOKEN} keeps 14 copies.", caller)
    await service.store(f"The {SPOKEN} keeps 30 copies.", caller)
    await service.evict(third.id)
    clock.advance(minutes=1)
    await service.promote(third.id, caller)
    await service.update(second.id, {"content": f"{SPOKEN} four", "category": "decision"}, caller)
    await service.search(f"{SPOKEN} {SPOKEN}", caller=caller)
    seen = Observation(content=f"{SPOKEN} was seen by the gate", category="note", confidence=0.9, rule="remember")
    await service.capture([seen, seen], caller)
    await service.settle()
    pad = folder / "scratchpad.yaml"
    pad.write_text(pad.read_text().replace(f"{SPOKEN} three", f"{SPOKEN} changed") + f"- content: {SPOKEN} added\n")
    await service.scratchpad(caller)
    pad.write_text(f"- {SPOKEN}: [broken {SPOKEN}\n- id: {SPOKEN}\n")
    await service.scratchpad(caller)
    pad.write_text(f"- id: {SPOKEN}\n  content: {SPOKEN}\n")
    await service.scratchpad(caller)
    await service.forget(second.id, caller)
    await service.history.restore(second.id, caller)
    await service.settle()
    pad.write_text(pad.read_text() + f"- {{content: {SPOKEN}, category: 'No {SPOKEN}'}}\n")
    await service.scratchpad(caller)
    await service.settle()


ELSEWHERE = (
    "memory:held",
    "memory:decided",
    "memory:migration_", "memory:resource_", "memory:episodes_", "memory:item", "memory:category_", "memory:retrieval_",
    "memory:ingestion_", "memory:background_", "memory:archived", "memory:tidied", "memory:briefed", "memory:alert",
    "memory:backed_up", "memory:backup_restored", "memory:purged",
)  # fmt: skip


async def test_each_event_has_the_fields_of_the_table_and_no_other(
    service: MemoryService, listener: Listener, folder: Path, clock: FrozenClock
) -> None:
    await live(service, listener, folder, clock)
    elsewhere = {name for name in EVENTS if name == "memory:activated" or name.startswith(ELSEWHERE)}
    assert set(listener.names()) == EVENTS.keys() - elsewhere
    for name, data in listener.events:
        assert data.keys() == EVENTS[name].fields.keys() | COMMON, name
        assert (data["agent_id"], data["session_id"]) == ("bob", "session-1")
        assert data["timestamp"].endswith("Z")
        json.dumps(data, allow_nan=False)


async def test_no_event_and_no_audit_line_says_what_a_memory_or_a_query_says(
    service: MemoryService, listener: Listener, folder: Path, clock: FrozenClock
) -> None:
    await live(service, listener, folder, clock)
    assert SPOKEN not in json.dumps(listener.events)
    audit = (folder / "events.jsonl").read_text()
    assert SPOKEN not in audit
    searched = listener.of("memory:searched")[0]
    assert searched["query_chars"] == 2 * len(SPOKEN) + 1
    assert len(searched["query_sha8"]) == 8


async def test_the_audit_log_holds_the_changes_and_only_those(
    service: MemoryService, listener: Listener, folder: Path, clock: FrozenClock
) -> None:
    await live(service, listener, folder, clock)
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    audited = [name for name in listener.names() if EVENTS[name].audited]
    assert sorted(line["event"] for line in lines) == sorted(audited)
    assert all(line["at"] and line["session_id"] == "session-1" for line in lines)
    assert "memory:searched" not in {line["event"] for line in lines}


def test_a_field_that_is_not_in_the_table_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        payload("memory:forgotten", {"memory_id": "x", "content": "y"})
    with pytest.raises(KeyError):
        payload("memory:nonsense", {})


def test_payloads_are_what_a_host_can_carry() -> None:
    carried = payload("memory:searched", {"latency_ms": float("inf"), "mode": "half \ud800", "results_count": 3})
    assert carried == {"latency_ms": None, "mode": "half ?", "results_count": 3}
    assert payload("memory:stored", {"redacted": ("a", "\udfff")})["redacted"] == ["a", "?"]


async def test_no_event_and_no_audit_line_has_a_secret_in_the_name_of_its_session(
    service: MemoryService, listener: Listener, folder: Path, secret: str
) -> None:
    await service.store("tea", replace(listener.caller, session_id=secret))
    await service.settle()
    assert listener.of("memory:stored")[0]["session_id"] == "[redacted:github-token]"
    assert secret not in (folder / "events.jsonl").read_text()


def test_no_word_that_somebody_made_up_goes_out_as_a_category() -> None:
    assert payload("memory:stored", {"category": "decision"})["category"] == "decision"
    assert payload("memory:stored", {"category": SPOKEN.lower()})["category"] == "other"


async def test_tags_are_counted_and_not_told(service: MemoryService, listener: Listener) -> None:
    await service.store({"content": "tea", "tags": ["hot", SPOKEN]}, listener.caller)
    (told,) = listener.of("memory:stored")
    assert told["tag_count"] == 2
    assert SPOKEN.lower() not in json.dumps(told).lower()


def test_a_querys_digits_are_the_same_in_one_process_and_others_in_the_next() -> None:
    assert fingerprint("4711") == fingerprint("4711") != fingerprint("4712")
    code = "from agent_memory.memory.events import fingerprint; print(fingerprint('4711'))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert len(other) == 8
    assert other != fingerprint("4711")


def test_the_documentation_names_every_event_and_field() -> None:
    text = document()
    for name, spec in EVENTS.items():
        section = text.partition(f"\n## {name}")[2].partition("\n## ")[0]
        assert all(f"- `{field}`: " in section for field in spec.fields)
        assert ("*Audited.*" in section) is spec.audited


# -- the audit log's file ---------------------------------------------------------------------------------------------


def entry(number: int) -> dict[str, Any]:
    return {"timestamp": "2026-03-01T12:00:00Z", "session_id": "s", "memory_id": f"mem-{number:012x}", "content": "no"}


def test_lines_carry_ids_and_kinds_alone(tmp_path: Path) -> None:
    AuditLog(tmp_path / "events.jsonl").append("memory:stored", {**entry(1), "redacted": [], "supersedes": None})
    (line,) = (tmp_path / "events.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "at": "2026-03-01T12:00:00Z",
        "event": "memory:stored",
        "session_id": "s",
        "memory_id": "mem-000000000001",
    }


def test_a_full_file_is_rotated_once_and_no_line_is_cut(tmp_path: Path, open_umask: None) -> None:
    path = tmp_path / "new" / "events.jsonl"
    logs = [AuditLog(path, max_bytes=1000) for _ in range(2)]
    for number in range(24):
        logs[number % 2].append("memory:stored", entry(number))
        assert not path.exists() or path.stat().st_size < 1000
    older = [json.loads(line) for line in path.with_name("events.1.jsonl").read_text().splitlines()]
    newer = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    ids = [line["memory_id"] for line in [*older, *newer]]
    assert ids == sorted(ids)
    assert ids[-1] == "mem-000000000017"
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}


def test_an_audit_log_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").mkdir()
    with pytest.raises(StorageError):
        AuditLog(tmp_path / "events.jsonl").append("memory:stored", entry(1))


async def test_a_store_succeeds_though_its_audit_line_fails(
    service: MemoryService, listener: Listener, folder: Path
) -> None:
    (folder / "events.jsonl").mkdir(parents=True)
    stored = await service.store({"content": "tea"}, listener.caller)
    await service.settle()
    assert await service.get(stored.memory.id)
