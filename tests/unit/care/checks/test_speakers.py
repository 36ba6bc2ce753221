"""Conversations that an earlier version imported without reading who speaks are listed, and no others."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_memory.care.checks.codes import Severity
from agent_memory.care.checks.examination import examine_agent
from agent_memory.knowledge import inspection
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.intake.withdrawal import find_ingested, undo
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory import Caller, open_service
from agent_memory.settings import ServiceSettings

FIXTURES = Path(__file__).parents[3] / "fixtures"
LOG = FIXTURES / "texts" / "agent-log.jsonl"


def find_speakers(root: Path) -> dict[str, tuple[Severity, str, tuple[str, ...]]]:
    """Return severity, sentence and details of the findings about speakers, by code."""
    settings = ServiceSettings(embedder="none", storage_root=str(root))
    report = examine_agent(root, "bob", now=datetime.now(UTC), settings=settings)
    return {
        finding.code: (finding.severity, finding.sentence, finding.details)
        for finding in report.findings
        if finding.area == "speakers"
    }


@pytest.fixture
def old(root: Path) -> Path:
    """Return a storage root with logs that an earlier version imported."""
    shutil.copytree(FIXTURES / "08b1688e" / "logs" / "agents", root)
    return root


def test_doctor_of_old_imports_lists_guessed_speakers(old: Path) -> None:
    found = find_speakers(old)
    severity, sentence, details = found["speakers_guessed"]
    assert severity == Severity.WARNING
    assert sentence.startswith("3 turns of 1 imported conversation are called the user's")
    assert [detail.partition(" ")[2] for detail in details] == ["(agent-log.jsonl): 3"]
    severity, sentence, details = found["speakers_unchecked"]
    assert severity == Severity.NOTE
    assert [detail.partition(" ")[2] for detail in details] == ["(tool-messages.json): 2"]


def test_doctor_with_many_turns_says_where_it_stopped(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "MOST_TURNS", 1)
    assert "The check stopped after 1 turn." in find_speakers(old)["speakers_guessed"][1]


async def test_doctor_after_undo_and_ingest_is_silent(old: Path) -> None:
    settings = ServiceSettings(embedder="none", storage_root=str(old))
    service, caller = open_service("bob", settings), Caller("cli")
    knowledge = Knowledge("bob", settings)
    ingest = Ingest(knowledge)
    again = await ingest.file(LOG)
    assert len(again.mistaken) == 1
    await undo(knowledge, service, again.mistaken, caller)
    done = await ingest.file(LOG)
    assert (done.new, done.mistaken) == (3, [])
    said = [(turn.role, turn.trust) async for turn in knowledge.episodes.iter_all() if "paste.evil" in turn.content]
    assert ("tool", "low") in said
    (talk,) = await find_ingested(knowledge, LOG.name)
    assert talk.metadata["format"] == "claude_code"
    await service.close()
    assert "speakers_guessed" not in find_speakers(old)


async def test_doctor_of_new_imports_is_silent(root: Path) -> None:
    await Ingest(Knowledge("bob", ServiceSettings(embedder="none", storage_root=str(root)))).file(LOG)
    assert find_speakers(root) == {}


def test_log_fixture_holds_the_page_as_the_users(old: Path) -> None:
    lines = (old / "bob" / "episodes.yaml").read_text().splitlines()[1:]
    assert any("paste.evil" in line for line in lines)
    assert not any('"role": "tool"' in line for line in lines)
