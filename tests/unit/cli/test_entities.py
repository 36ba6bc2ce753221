"""`entity` in time, and forgotten for good."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agent_memory.models import derived_id
from tests.unit.cli.conftest import document, relate

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run

SAID = (
    ("2026-01-10", "I live in Bern, and Bern is nice."),
    ("2026-02-10", "I work at Acme Corp since February 2026."),
    ("2026-03-10", "I moved to Hamburg, since Hamburg has a harbour."),
    ("2026-06-10", "I left Acme Corp."),
)
RELATIONS = (
    ("lives_in", "Bern", SAID[0][1], "2026-01-10", "2026-03-10"),
    ("works_at", "Acme Corp", SAID[1][1], "2026-02-01", "2026-06-10"),
    ("lives_in", "Hamburg", SAID[2][1], "2026-03-10", None),
    ("works_at", "Acme Corp", SAID[3][1], "2026-06-10", "2026-06-10"),
)


@pytest.fixture
def talk(cli: Run, tmp_path: Path, root: Path) -> Run:
    """Tobias Reuter tells eve where he lives and works, and a model relates it."""
    turns = [{"speaker": "Tobias Reuter", "text": text, "timestamp": f"{day}T10:00:00Z"} for day, text in SAID]
    (tmp_path / "talk.jsonl").write_text("\n".join(map(json.dumps, turns)))
    cli("ingest", "-a", "eve", str(tmp_path / "talk.jsonl"))
    for relation, place, text, first, last in RELATIONS:
        valid_to = last and f"{last}T10:00:00Z"
        relate(root, relation, "Tobias Reuter", place, content=text, valid_from=f"{first}T10:00:00Z", valid_to=valid_to)
    return cli


def told(cli: Run, *args: str) -> list[str]:
    """Return the texts of the time of Tobias Reuter."""
    shown = cli("knowledge", "entity", "-a", "eve", "Tobias Reuter", "--json", *args)
    return [each["text"] for each in document(shown)["timeline"]]


def test_what_held_no_more_on_a_day_is_not_shown_of_it(talk: Run) -> None:
    assert told(talk, "--as-of", "2026-02-20") == [SAID[0][1], "I work at Acme Corp since February 2026."]
    assert told(talk, "--as-of", "2026-12-01") == [SAID[2][1]]
    assert len(told(talk)) == len(SAID)


def test_a_mistyped_name_is_answered_with_the_one_that_is_meant(talk: Run) -> None:
    assert "Did you mean Tobias Reuter?" in talk("entity", "-a", "eve", "Tobais Reuter", code=3).stderr
    assert "Did you mean" not in talk("entity", "-a", "eve", "Zoe", code=3).stderr


def test_what_is_over_is_told_from_both_ends(talk: Run) -> None:
    assert "  no longer works at Acme Corp: “I left" in talk("entity", "-a", "eve", "Tobias Reuter").stdout
    assert "  Tobias Reuter no longer works at Acme Corp: “I left" in talk("entity", "-a", "eve", "Acme Corp").stdout


def test_a_turn_that_is_not_shown_any_more_leaves_no_bare_name_beside_what_it_tells(talk: Run, tmp_path: Path) -> None:
    talk("ingest", "-a", "eve", "--undo", "--yes", "talk.jsonl")
    talk("ingest", "-a", "eve", str(tmp_path / "talk.jsonl"))
    assert "Tobias Reuter" not in told(talk)
    assert SAID[2][1] in told(talk)


@pytest.mark.parametrize("trusted", [["--trusted"], []])
def test_who_was_forgotten_is_not_known_again_after_an_import(talk: Run, tmp_path: Path, trusted: list[str]) -> None:
    talk("entity", "-a", "eve", "Hamburg", "--forget", "--yes")
    talk("export", "-a", "eve", str(tmp_path / "all.jsonl"))
    talk("import", "-a", "ben", str(tmp_path / "all.jsonl"), *trusted)
    (tmp_path / "more.md").write_text("So Hamburg has a harbour, but Hamburg and Bern differ: in Bern there is none.")
    talk("ingest", "-a", "ben", str(tmp_path / "more.md"))
    names = {each["name"] for each in document(talk("entities", "-a", "ben", "--json"))["entities"]}
    assert ("Bern" in names, "Hamburg" in names) == (True, False)


def test_a_file_of_strangers_silences_nobody_who_is_known(talk: Run, tmp_path: Path) -> None:
    (known,) = (
        each for each in document(talk("entities", "-a", "eve", "--json"))["entities"] if each["name"] == "Hamburg"
    )
    own = derived_id("mrk-", "entities", "resource")
    line = {"kind": "stage_mark", "id": own, "stage": "entities", "source_kind": "resource"}
    (tmp_path / "in.jsonl").write_text(json.dumps({**line, "never": [known["id"]]}))
    talk("import", "-a", "eve", str(tmp_path / "in.jsonl"))
    (tmp_path / "more.md").write_text("Yes, the harbour of Hamburg.")
    talk("ingest", "-a", "eve", str(tmp_path / "more.md"))
    (found,) = (
        each for each in document(talk("entities", "-a", "eve", "--json"))["entities"] if each["name"] == "Hamburg"
    )
    assert found["mentions"] == known["mentions"] + 1


def test_entity_unknown_name_counts_passages_and_names_search(talk: Run) -> None:
    unknown = talk("entity", "-a", "eve", "harbour", code=3).stderr
    assert "1 passage mentions it." in unknown
    assert "agent-memory search harbour" in unknown
    assert "mention" not in talk("entity", "-a", "eve", "Zoe", code=3).stderr
