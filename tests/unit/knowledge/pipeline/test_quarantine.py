"""A record on which the process dies is read alone at the third time, and quarantined if that process dies, too."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agent_memory.files.processes import CPU_SECONDS, CurrentNote, ReaderDiedError, get_own_identity, read_alone
from agent_memory.knowledge.pipeline import stages
from agent_memory.models import Episode
from tests.concurrency.processes import REPOSITORY, environment
from tests.fork_server import CommandForker
from tests.in_process import build_cli
from tests.unit.knowledge.pipeline import deadly

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from agent_memory.knowledge.pipeline.stages import Backlog
    from agent_memory.knowledge.records import Knowledge


def name_ended_process() -> str:
    """Return the name of a process of this machine that has ended."""
    identity = get_own_identity()
    assert identity is not None
    return replace(identity, started="0").to_json()


@pytest.fixture
async def knowledge(root: Path) -> AsyncIterator[Knowledge]:
    opened = deadly.opened(root)
    yield opened
    await opened.close()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


async def say(knowledge: Knowledge, *texts: str) -> list[str]:
    return [await knowledge.episodes.store(Episode(agent_id="bob", content=text)) for text in texts]


@pytest.fixture(scope="module")
def forker() -> Iterator[CommandForker]:
    forker = CommandForker("agent_memory.knowledge.records", "agent_memory.knowledge.pipeline.background_work", "numpy")
    yield forker
    forker.close()


@pytest.fixture
def die_or_end(forker: CommandForker, root: Path, out: Path) -> Callable[..., int]:
    """Return what works in another process, and gives its exit status."""

    def work(*kills: str) -> int:
        words = ["tests.unit.knowledge.pipeline.deadly", str(root), str(out), *kills]
        return forker.run(words, environment()).returncode

    return work


async def backlog_of(knowledge: Knowledge, out: Path) -> Backlog:
    return (await deadly.runner_of(knowledge, out).backlog())[0]


async def test_run_poison_is_quarantined_after_two_deaths(
    knowledge: Knowledge, out: Path, die_or_end: Callable[..., int]
) -> None:
    ids = await say(knowledge, "a", "poison", "c")
    assert [die_or_end() for _ in range(4)] == [9, 9, 0, 0]
    assert set(out.read_text().split()) == {"A", "C"}
    backlog = await backlog_of(knowledge, out)
    (record,) = backlog.quarantined
    assert (record.id, record.title, record.reason) == (ids[1], "poison", "ended_with_9")
    assert (backlog.due, backlog.failed) == (0, 1)
    assert (await knowledge.episodes.get(ids[1])) is not None
    assert not (knowledge.folder.path / "tasks.current.json").exists()


async def test_run_two_ordinary_kills_quarantine_nothing(
    knowledge: Knowledge, out: Path, die_or_end: Callable[..., int]
) -> None:
    await say(knowledge, "a", "unlucky", "c")
    assert [die_or_end("unlucky") for _ in range(4)] == [9, 9, 0, 0]
    assert set(out.read_text().split()) == {"A", "UNLUCKY", "C"}
    assert await backlog_of(knowledge, out) == await backlog_of(knowledge, out.with_name("other"))
    assert (await backlog_of(knowledge, out)).quarantined == ()


@pytest.mark.parametrize(("text", "reason"), [("thistle", "ZeroDivisionError"), ("memory", "memory")])
async def test_run_record_that_raises_alone_is_quarantined(
    knowledge: Knowledge, out: Path, text: str, reason: str
) -> None:
    ids = await say(knowledge, "a", text)
    note = {"owner": name_ended_process(), "current": [], "deaths": {ids[1]: 2}}
    (knowledge.folder.path / "tasks.current.json").write_text(json.dumps(note))
    await deadly.runner_of(knowledge, out).run()
    assert [record.reason for record in (await backlog_of(knowledge, out)).quarantined] == [reason]


async def test_run_new_version_and_retry_read_quarantined_again(
    knowledge: Knowledge, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (record_id,) = await say(knowledge, "thistle")
    note = {"owner": name_ended_process(), "current": [record_id], "deaths": {record_id: 1}}
    (knowledge.folder.path / "tasks.current.json").write_text(json.dumps(note))
    runner = deadly.runner_of(knowledge, out)
    assert (await runner.run()).failed == 1
    assert (await runner.run()).failed == 0, "the same version tries no more"
    assert (await runner.run(retry=[record_id])).failed == 1
    with monkeypatch.context() as patched:
        patched.setattr(stages, "get_version", lambda: "9.9.9")
        assert (await runner.run()).failed == 1
        assert (await runner.run()).failed == 0
    await knowledge.episodes.update(record_id, {"content": "thorn"})
    await runner.run()
    assert (await backlog_of(knowledge, out)).quarantined == ()
    assert set(out.read_text().split()) == {"THORN"}


async def test_read_alone_child_has_limits_and_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_MEMORY_KEY", "a key")
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    seen = await read_alone(deadly.look_around, "text")
    assert seen["pid"] != os.getpid()
    assert "a key" not in seen["environment"].values()
    assert CPU_SECONDS <= seen["RLIMIT_CPU"][0] <= CPU_SECONDS + 30
    assert seen["RLIMIT_AS"][0] != resource.RLIM_INFINITY


async def test_read_alone_function_of_no_module_is_refused() -> None:
    with pytest.raises(ReaderDiedError):
        await read_alone(lambda text: text, "text")


def test_note_cancelled_work_stays_named_and_exception_does_not(tmp_path: Path) -> None:
    path = tmp_path / "note"
    for raised, current in ((KeyError, []), (asyncio.CancelledError, ["epi-1"])):
        note = CurrentNote(path)
        with note.open_note(), suppress(KeyError, asyncio.CancelledError), note.naming(["epi-1"]):
            raise raised
        assert (json.loads(path.read_text())["current"] if path.exists() else []) == current
        with CurrentNote(path).open_note():
            assert json.loads(path.read_text())["deaths"] == {}, "this process runs"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"owner": [1], "current": [], "deaths": {}}', "\udcff"])
def test_note_unreadable_counts_nothing(tmp_path: Path, content: str) -> None:
    path = tmp_path / "note"
    path.write_bytes(content.encode(errors="surrogateescape"))
    note = CurrentNote(path)
    with note.open_note():
        assert note.deaths == {}


def test_note_torn_by_a_shorter_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "note"
    note = {"owner": name_ended_process(), "current": ["epi-1"], "deaths": {}}
    path.write_text(f'{json.dumps(note)}"deaths": {{}}}}')
    opened = CurrentNote(path)
    with opened.open_note():
        assert opened.deaths == {"epi-1": 1}


_POISONED = """\
import os
from agent_memory.knowledge.entities import entity_drafts

def find_mentions(text, **more):
    if "poison" in text:
        os._exit(9)
    return original(text, **more)

original, entity_drafts.find_mentions = entity_drafts.find_mentions, find_mentions
"""


async def test_ingest_poison_file_stops_no_later_file(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(_POISONED)
    (tmp_path / "a.md").write_text("Notes\n\nPlease read the poison label before Friday.\n")
    (tmp_path / "b.md").write_text("# Other\n\nThe harbour of Lisbon is open at nine.\n")
    own = environment()
    own["PYTHONPATH"] = os.pathsep.join([str(tmp_path), own["PYTHONPATH"]])

    def ingest(*words: str) -> int:
        command = [sys.executable, "-m", "agent_memory.cli", "-a", "bob", "--root", str(root), "ingest", *words]
        return subprocess.run(command, env=own, check=False, capture_output=True).returncode

    codes = [ingest(str(tmp_path / name)) for name in ("a.md", "b.md", "b.md")]
    assert codes == [9, 9, 0]
    run = build_cli(root, monkeypatch)
    status = json.loads((await asyncio.to_thread(run, "status", "--json", code=None)).stdout)
    (record,) = [record for stage in status["background"] for record in stage["quarantined"]]
    assert (record["title"], record["reason"]) == ("a.md", "ended_with_9")
    assert record["id"] in (await asyncio.to_thread(run, "status", code=None)).stdout
    assert record["id"] in (await asyncio.to_thread(run, "doctor", code=None)).stdout
    assert ingest("--retry", record["id"]) == 1
    knowledge = deadly.opened(root)
    assert [entity.name for entity in await knowledge.entities.valid()] == ["Lisbon"]
    assert [each.id for each in await knowledge.resources.valid() if "poison" in each.content] == [record["id"]]
    await knowledge.close()
