"""A memory with topics of an earlier version: what is hidden, what stays, and what a rebuild reads again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.in_process import build_cli, copy_private

if TYPE_CHECKING:
    from tests.in_process import Run

OLD = Path(__file__).parents[1] / "fixtures" / "08b1688e" / "topics"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the root of a copy of the memory, readable by its owner alone."""
    return copy_private(OLD, tmp_path / "copy") / "agents"


@pytest.fixture
def cli(root: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return `agent-memory` in this process."""
    return build_cli(root, monkeypatch)


def list_topics(cli: Run) -> dict[str, dict[str, Any]]:
    return {topic["name"]: topic for topic in json.loads(cli("topics", "--json").stdout)["topics"]}


def test_old_topics_before_any_work_are_hidden_unless_edited(cli: Run) -> None:
    assert set(list_topics(cli)) == {"bergen"}
    assert "Ask Ben for the list of crates." in cli("topic", "bergen").stdout
    hidden = cli("topic", "kestrel", code=3)
    assert 'No page "kestrel". 6 passages mention it.' in hidden.stderr
    assert "agent-memory search kestrel" in hidden.stderr
    assert "5 topics of an earlier version are hidden" in cli("doctor", code=0).stdout


def test_rebuild_of_an_old_memory_keeps_edits_and_pins(cli: Run, root: Path) -> None:
    files = {path.name: path.read_bytes() for path in (root / "bob" / "topics").glob("*.md")}
    pinned = [memory["content"] for memory in json.loads(cli("list", "--json").stdout)["memories"] if memory["pinned"]]

    result = cli("knowledge", "rebuild")

    assert result.stdout == "20 documents and turns read again: 6 new items, 6 pages.\n"
    topics = list_topics(cli)
    assert set(topics) == {"ada", "ben", "bergen", "crew", "guide", "mallard"}
    assert topics["guide"]["title"] == "Client guide"
    assert topics["bergen"]["edited"]
    after = {path.name: path.read_bytes() for path in (root / "bob" / "topics").glob("*.md")}
    unchanged = {"adding.md", "bergen.md", "kestrel.md"}
    assert {name: after[name] for name in unchanged} == {name: files[name] for name in unchanged}
    assert "2 topics of an earlier version are hidden" in cli("doctor").stdout
    shown = json.loads(cli("list", "--json", "--limit", "50").stdout)["memories"]
    assert [memory["content"] for memory in shown if memory["pinned"]] == pinned
    assert [memory["pinned"] for memory in list_items(cli) if "Mallard" in memory["content"]].count(True) == 1


def test_rebuild_done_again_changes_nothing(cli: Run, root: Path) -> None:
    cli("knowledge", "rebuild")
    before = [(item["id"], item["content"]) for item in list_items(cli)]
    pages = {path.name: path.read_text() for path in (root / "bob" / "topics").glob("*.md")}

    again = json.loads(cli("knowledge", "rebuild", "--json").stdout)

    assert (again["new"], again["failed"]) == (0, 0)
    assert [(item["id"], item["content"]) for item in list_items(cli)] == before
    assert {path.name for path in (root / "bob" / "topics").glob("*.md")} == set(pages)


def test_hidden_topic_declared_is_shown_again(cli: Run) -> None:
    cli("knowledge", "rebuild")
    cli("topic", "kestrel", "--declare", "Kestrel, the boat at the pier of the old harbour.")
    topics = list_topics(cli)
    assert topics["kestrel"]["declared"]
    assert topics["kestrel"]["items"] >= 6


def list_items(cli: Run) -> list[dict[str, Any]]:
    return list(json.loads(cli("list", "--items", "--limit", "200", "--json").stdout)["memories"])
