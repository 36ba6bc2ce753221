"""`briefing`: what a session is told before its first answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.unit.cli.conftest import document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run


def test_a_briefing_is_shown_with_its_size(cli: Run) -> None:
    cli("store", "-a", "eve", "The attempt budget of the Retrier is seven.")
    cli("store", "-a", "eve", "--pin", "Answers are short.")
    done = cli("briefing", "-a", "eve", "--for", "What is the attempt budget of the Retrier?")
    assert done.stdout.startswith("[agent-memory: briefing of eve]\n")
    assert "budget of the Retrier is seven" in done.stdout
    assert "Answers are short." in done.stdout
    assert "tokens of 500, from 2 memories" in done.stderr
    said = document(cli("briefing", "-a", "eve", "--json", "--tokens", "120"))
    assert 0 < said["tokens"] <= 120
    assert "Retrier" not in said["text"]
    assert len(said["sources"]) == 1


def test_briefing_without_agents_says_how_to_begin(cli: Run) -> None:
    assert "No agents" in cli("briefing").stderr


def test_nothing_to_tell_says_so(cli: Run) -> None:
    cli("store", "-a", "eve", "Parcels leave at noon.")
    assert "the session begins with the scratchpad alone" in cli("briefing", "-a", "eve").stderr
    assert "Nothing bears on that" in cli("briefing", "-a", "eve", "--for", "A poem on autumn").stderr


def test_briefing_shows_day_of_saying_or_of_file(cli: Run, tmp_path: Path) -> None:
    words = ("I leave on Friday, I think.", "The boat to Bergen is ready for you.")
    turns = [{"role": "user", "content": f"{text} {number}"} for number in range(3) for text in words]
    for name, moment in (("chat.jsonl", {}), ("talk.jsonl", {"timestamp": "2026-03-02T10:00:00Z"})):
        (tmp_path / name).write_text("\n".join(json.dumps(turn | moment) for turn in turns))
    cli("ingest", "-a", "eve", str(tmp_path / "chat.jsonl"))
    undated = cli("briefing", "-a", "eve", "--for", "when does Ada leave on the boat to Bergen").stdout
    assert "of an unknown day, file of 20" in undated
    assert "(said" not in undated
    cli("ingest", "-a", "bob", str(tmp_path / "talk.jsonl"))
    dated = cli("briefing", "-a", "bob", "--for", "when does Ada leave on the boat to Bergen").stdout
    assert "From a conversation of 2026-03-02:" in dated
    assert "- person: I leave on Friday, I think. 0 (said 2026-03-02 (Mon))" in dated
    assert "said        2026-03-02 (Mon)" in cli("show", "-a", "bob", _find_item(cli)).stdout
    lines = [f"{name}: {text} {n}" for n in range(3) for name, text in zip(("Ada", "Tom"), words, strict=True)]
    (tmp_path / "Talk 2026-03-02.txt").write_text("\n".join(lines))
    cli("ingest", "-a", "bob", str(tmp_path / "Talk 2026-03-02.txt"))
    assert (
        "I leave on Friday, I think. (said 2026-03-02 (Mon))" in cli("knowledge", "entity", "-a", "bob", "Ada").stdout
    )


def _find_item(cli: Run) -> str:
    rows = document(cli("list", "-a", "bob", "--items", "--json"))["memories"]
    return next(str(row["id"]) for row in rows if "Friday" in row["content"])
