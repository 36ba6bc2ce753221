"""What is noted of a session for its resume: where it lies, how much of it, and what a damaged note counts as."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.integrations.amplifier import session_notes as host_notes
from agent_memory.integrations.amplifier.session_notes import SessionNote, SessionNotes

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "note",
    [
        "",
        "{",
        "[]",
        "5",
        '{"agent_id": "bob", "proposals": 5}',
        '{"agent_id": "bob", "proposals": {"a": "b"}}',
        '{"agent_id": "../x"}',
        '{"agent_id": 5}',
        "\udcff",
    ],
)
def test_an_unreadable_note_counts_as_none(tmp_path: Path, note: str) -> None:
    memory = SessionNotes(tmp_path)
    memory.remember("one", SessionNote("bob", is_tainted=True))
    assert memory.recall("one") == SessionNote("bob", is_tainted=True)
    (kept,) = (tmp_path / "_sessions").iterdir()
    kept.write_text(note, errors="surrogateescape")
    assert memory.recall("one") == SessionNote()


@pytest.mark.parametrize("session_id", ["../../x", "a/b", "\ud800", "x" * 5000])
def test_no_session_id_leads_out_of_the_folder(tmp_path: Path, session_id: str) -> None:
    SessionNotes(tmp_path).remember(session_id, SessionNote("bob"))
    assert SessionNotes(tmp_path).recall(session_id) == SessionNote("bob")
    assert [path.parent.name for path in tmp_path.rglob("*.json")] == ["_sessions"]


def test_only_so_many_sessions_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_notes, "_MAX_NOTES", 3)
    for number in range(6):
        SessionNotes(tmp_path).remember(f"session {number}", SessionNote("bob"))
    assert len(list((tmp_path / "_sessions").glob("*.json"))) == 3


def test_damaged_file_of_rules_is_written_again(tmp_path: Path) -> None:
    notes = SessionNotes(tmp_path)
    assert notes.claim_rules("bob", ["mem-1"]) == {"mem-1"}
    (tmp_path / "_sessions" / "bob.rules").write_bytes(b"\xff\xfe mem-1")
    assert notes.claim_rules("bob", ["mem-1", "mem-2"]) == {"mem-2"}
    assert notes.claim_rules("bob", ["mem-2"]) == set()
