"""`summaries`: what was said in fewer words, with whose conversation it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.conftest import document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run


@pytest.fixture
def talk(tmp_path: Path) -> str:
    """A conversation of 21 turns, called `boat`."""
    turns = [
        {
            "conversation_id": "boat",
            "speaker": "Lea",
            "text": f"Kestrel paid {number + 10} euros in Bremen. It was fine, and nobody minded at all.",
            "timestamp": f"2026-05-{number + 1:02d}T10:00:00Z",
        }
        for number in range(21)
    ]
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join(map(json.dumps, turns)))
    return str(path)


def test_summaries_are_shown_with_the_name_of_their_conversation(cli: Run, talk: str) -> None:
    cli("ingest", "-a", "eve", talk)
    shown = cli("knowledge", "summaries", "-a", "eve").stdout.splitlines()
    (one,) = document(cli("knowledge", "summaries", "-a", "eve", "--json"))["summaries"]
    assert shown[0] == f"boat · 20 turns until 2026-05-20 (untrusted) · {one['id']}"
    assert shown[1].startswith("  Lea: Kestrel paid ")
    assert (one["level"], len(one["covers"]), one["trust"]) == ("window", 20, "low")
    for word in ("boat", one["conversation"]):
        assert cli("knowledge", "summaries", "-a", "eve", word).stdout.splitlines() == shown


def test_what_has_no_summary_says_when_there_will_be_one(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "short.jsonl").write_text('{"speaker": "Ann", "text": "The router is upstairs."}')
    cli("ingest", "-a", "eve", str(tmp_path / "short.jsonl"))
    assert "twenty turns" in cli("knowledge", "summaries", "-a", "eve").stderr
    assert "No resource 'boat'" in cli("knowledge", "summaries", "-a", "eve", "boat", code=3).stderr


def test_a_conversation_that_is_taken_back_takes_its_summaries_along(cli: Run, talk: str) -> None:
    cli("ingest", "-a", "eve", talk)
    cli("ingest", "-a", "eve", "--undo", "--yes", talk)
    assert document(cli("knowledge", "summaries", "-a", "eve", "--json"))["total"] == 0
