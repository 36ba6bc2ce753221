"""`why`: whence a record of any kind comes, how far it is trusted and why."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.cli.conftest import A, B, C, document, relate

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run

TURNS = (
    {"speaker": "Tobias Reuter", "text": "I work at Acme Corp, and Acme Corp pays well."},
    {"speaker": "Tobias Reuter", "text": "I moved to Hamburg."},
)


@pytest.fixture
def talk(cli: Run, tmp_path: Path, root: Path) -> Run:
    """Tobias Reuter tells eve two things, and a model relates one of them."""
    (tmp_path / "talk.jsonl").write_text("\n".join(map(json.dumps, TURNS)))
    cli("ingest", "-a", "eve", str(tmp_path / "talk.jsonl"))
    relate(root, "works_at", "Tobias Reuter", "Acme Corp", content=TURNS[0]["text"])
    return cli


def told(cli: Run, word: str, agent: str = "eve") -> dict[str, Any]:
    """Return what is said of a record."""
    found: dict[str, Any] = document(cli("why", "-a", agent, word, "--json"))
    return found


def first(cli: Run, command: str) -> str:
    """Return the id of the first record that a command lists."""
    return str(document(cli(command, "-a", "eve", "--json"))[command][0]["id"])


def test_an_item_tells_its_turn_and_the_file_that_turn_stood_in(talk: Run) -> None:
    items = document(talk("list", "-a", "eve", "--items", "--json"))["memories"]
    item = next(each["id"] for each in items if "Hamburg" in each["content"])
    found = told(talk, item)
    turn, file = found["rests_on"]
    assert (found["kind"], found["trust"], found["source"]["kind"]) == ("item", "low", "extraction")
    assert (turn["rel"], turn["kind"], turn["content"]) == ("from", "episode", "I moved to Hamburg.")
    assert (file["rel"], file["kind"], file["source"], file["depth"]) == ("part_of", "resource", "talk.jsonl", 2)
    assert turn["id"] in found["why"]
    assert item in [each["id"] for each in told(talk, turn["id"])["used_by"]]


@pytest.mark.parametrize(
    ("command", "kind", "trust"),
    [("entities", "entity", "low"), ("episodes", "episode", "low"), ("resources", "resource", "medium")],
)
def test_every_kind_can_be_asked_for(talk: Run, command: str, kind: str, trust: str) -> None:
    one = first(talk, command)
    found = told(talk, one)
    assert (found["kind"], found["id"], found["state"], found["trust"]) == (kind, one, "here", trust)
    assert found["session"] == "cli"
    assert told(talk, one[:12])["id"] == one, "the beginning is enough"
    assert talk("why", "-a", "eve", one).stdout.startswith(f"{one} · {kind}\n")


def test_an_entity_tells_what_names_it_and_what_is_said_of_it(talk: Run) -> None:
    entities = document(talk("entities", "-a", "eve", "--json"))["entities"]
    tobias = next(each["id"] for each in entities if each["name"] == "Tobias Reuter")
    found = told(talk, tobias)
    named = {each["content"] for each in found["rests_on"] if each["rel"] == "named_in"}
    assert named == {turn["text"] for turn in TURNS}
    (relation, *_) = (each for each in found["used_by"] if each["rel"] == "subject")
    ends = {each["rel"]: each["kind"] for each in told(talk, relation["id"])["rests_on"] if each["depth"] == 1}
    assert ends == {"subject": "entity", "object": "entity", "from": "episode"}


def test_a_topic_is_asked_for_by_its_name(talk: Run) -> None:
    talk("topic", "-a", "eve", "moving", "--declare", "Where people move to, and from where")
    found = told(talk, "moving")
    assert (found["kind"], found["content"]) == ("topic", "moving: Where people move to, and from where")


def test_a_summary_tells_what_it_covers(cli: Run, tmp_path: Path) -> None:
    turns = [{"speaker": "Lea", "text": f"Kestrel paid {n} euros in Bremen. It was fine for all."} for n in range(20)]
    (tmp_path / "talk.jsonl").write_text("\n".join(map(json.dumps, turns)))
    cli("ingest", "-a", "eve", str(tmp_path / "talk.jsonl"))
    summary = first(cli, "summaries")
    found = told(cli, summary)
    assert sum(each["rel"] == "covers" for each in found["rests_on"]) == len(turns)
    shown = cli("why", "-a", "eve", summary).stdout
    assert "… and 11 others; --json has them" in shown


def test_a_chain_of_replaced_memories_is_told_from_both_ends(bob: Run) -> None:
    assert [(each["id"], each["state"]) for each in told(bob, C, "bob")["replaces"]] == [(A, "replaced")]
    older = told(bob, A, "bob")
    assert (older["state"], older["replaced_by"]) == ("replaced", C)
    assert f"replaced by {C}" in bob("why", "-a", "bob", A).stdout


def test_why_a_memory_of_a_file_is_not_trusted_more(cli: Run, tmp_path: Path) -> None:
    claim = {"id": B, "content": "Maria likes tea.", "trust": "high", "source": {"kind": "user"}}
    (tmp_path / "in.jsonl").write_text(json.dumps(claim))
    cli("import", "-a", "eve", str(tmp_path / "in.jsonl"))
    found = told(cli, B)
    assert (found["trust"], found["source"]["kind"]) == ("low", "import")
    assert "what a file says of itself is not believed" in found["why"]


def test_changes_are_told_with_the_session_that_made_them(bob: Run) -> None:
    bob("update", "-a", "bob", B, "--content", "Maria likes coffee.")
    change = told(bob, B, "bob")["changes"][-1]
    assert (change["what"], "content" in change["fields"], change["session"]) == ("changed", True, "cli")
    assert "session cli: content" in bob("why", "-a", "bob", B).stdout


def test_what_was_forgotten_or_archived_is_told_so(bob: Run) -> None:
    bob("forget", "-a", "bob", B, "--yes")
    assert (told(bob, B, "bob")["state"], told(bob, B, "bob")["changes"][-1]["what"]) == ("forgotten", "forgotten")
    bob("archive", "add", "-a", "bob", C)
    assert told(bob, C, "bob")["state"] == "archived"


def test_what_is_not_known_says_where_ids_stand(bob: Run) -> None:
    assert "Nothing is known about 'nothing'" in bob("why", "-a", "bob", "nothing", code=3).stderr
    for word in ("mem-ffffffffffff", "epi-ffffffffffff", "xyz-ffffffffffff"):
        bob("why", "-a", "bob", word, code=3)


def test_asking_counts_as_no_use(bob: Run) -> None:
    told(bob, B, "bob")
    assert document(bob("list", "-a", "bob", "--json"))["memories"][-1]["access_count"] == 0


def test_why_names_the_speaker_of_a_turn(cli: Run, tmp_path: Path) -> None:
    talk = tmp_path / "talk.jsonl"
    talk.write_text('{"speaker": "Ben", "text": "The backups go to Bergen every night."}\n')
    cli("ingest", "-a", "eve", str(talk))
    (item,) = document(cli("list", "--items", "--json"))["memories"]
    assert re.search(r"speaker\s+Ben", cli("why", item["id"]).stdout)
