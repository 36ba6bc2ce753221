"""`show --history`, `restore` and ending what they live on: `forget --now`, `compact --now`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.support import read_files
from tests.unit.cli.conftest import A, B, C

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run


def test_history_tells_what_became_of_a_memory(bob: Run) -> None:
    bob("update", B, "--content", "Maria likes coffee.", "--untag", "drinks")
    bob("forget", B, "--yes")
    versions = json.loads(bob("show", "--history", B, "--json").stdout)["versions"]
    assert [(each["what"], each["fields"]) for each in versions] == [
        ("stored", []),
        ("changed", ["content", "tags", "origin"]),
        ("forgotten", []),
    ]
    assert versions[0]["memory"]["tags"] == ["drinks", "maria"]
    shown = bob("show", "--history", B).stdout
    assert shown.index("likes tea") < shown.index("changed: content, tags") < shown.index("likes coffee")
    bob("show", "--history", "mem-ffffffffffff", code=3)


def test_what_was_forgotten_is_listed_and_comes_back(bob: Run) -> None:
    before = sorted(bob("export").stdout.splitlines())
    forgotten = bob("forget", C, "--yes")
    assert f"agent-memory undo {C}" in forgotten.stderr
    assert "compact --now" in forgotten.stderr
    rows = json.loads(bob("restore", "--json").stdout)["forgotten"]
    assert [row["id"] for row in rows] == [A, C]
    assert "in PostgreSQL" in bob("restore").stdout
    assert bob("undo", C[:-1] + "c").stdout == f"{C} is back, and 1 older version with it.\n"
    assert sorted(bob("export").stdout.splitlines()) == before
    assert "No forgotten memory can be restored" in bob("restore").stderr


def test_forget_says_for_programs_how_long_the_text_stays(bob: Run) -> None:
    assert json.loads(bob("forget", B, "--yes", "--json").stdout)["kept_until"] > "2026"


def test_what_was_replaced_counts_again(bob: Run) -> None:
    assert f"{C}, which had replaced it, stays" in bob("restore", A).stdout
    assert len(json.loads(bob("list", "--json").stdout)["memories"]) == 3


def test_a_change_is_taken_back(bob: Run) -> None:
    bob("update", B, "--content", "Maria likes coffee.")
    assert "content" in bob("restore", B).stdout
    assert "likes tea" in bob("show", B).stdout
    seq = json.loads(bob("show", "--history", B, "--json").stdout)["versions"][1]["seq"]
    bob("restore", B, "--version", str(seq))
    assert "likes coffee" in bob("show", B).stdout
    assert "[nothing_to_restore]" in bob("restore", C, code=1).stderr


def files_with(root: Path, text: str) -> list[str]:
    return [file.name for file, content in read_files(root) if text.encode() in content]


def test_forgetting_now_leaves_the_text_in_no_file(bob: Run, root: Path) -> None:
    bob("update", B, "--content", "Maria likes coffee.")
    result = bob("forget", B, "--now", "--yes")
    assert "deleted from memories.yaml" in result.stdout
    assert files_with(root, "Maria likes") == []
    assert json.loads(bob("restore", "--json").stdout)["forgotten"] == []
    bob("show", C)


def test_compacting_now_ends_what_could_be_brought_back(bob: Run, root: Path) -> None:
    bob("forget", B, "--yes")
    assert files_with(root, "Maria likes") == ["memories.yaml"]
    bob("archive", "compact")
    assert files_with(root, "Maria likes") == ["memories.yaml"]
    bob("archive", "compact", "--now", code=2)
    bob("archive", "compact", "--now", "--yes")
    assert files_with(root, "Maria likes") == []


def test_copies_that_were_not_looked_into_are_named(bob: Run, root: Path) -> None:
    (root / "bob" / "memories.rejected.yaml").write_text("Maria likes")
    assert "memories.rejected.yaml" in bob("forget", B, "--now", "--yes").stderr
