"""`projects`, and `--project` of other commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.cli.conftest import document

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Run


def test_projects_are_listed_and_moved(cli: Run) -> None:
    cli("store", "-a", "eve", "Releases are tagged by hand.", "--project", "kestrel")
    cli("store", "-a", "eve", "The bot deploys at night.", "--project", "kestrel")
    cli("store", "-a", "eve", "The office is in Bremen.")
    listed = cli("projects", "-a", "eve")
    assert listed.stdout == "kestrel  2 memories\n"
    assert "1 memory has no project." in listed.stderr
    assert document(cli("list", "-a", "eve", "--project", "kestrel", "--json"))["total"] == 2
    found = document(cli("search", "-a", "eve", "deploys", "--project", "heron", "--json", code=3))
    assert found["results"] == []
    assert (
        cli("projects", "-a", "eve", "--move", "kestrel", "heron", "--yes").stdout == "2 memories moved to 'heron'.\n"
    )
    said = document(cli("projects", "-a", "eve", "--json"))
    assert said["projects"] == [{"project": "heron", "memories": 2}]
    assert said["without"] == 1
    assert "There are: heron." in cli("projects", "-a", "eve", "--move", "kestrel", "owl", "--yes", code=3).stderr


def test_a_memory_is_given_to_a_project_and_taken_from_it(cli: Run) -> None:
    stored = document(cli("store", "-a", "eve", "The office is in Bremen.", "--json"))["memory_id"]
    cli("update", "-a", "eve", stored, "--project", "kestrel")
    assert "project" in cli("show", "-a", "eve", stored).stdout
    assert document(cli("show", "-a", "eve", stored, "--json"))["project"] == "kestrel"
    cli("update", "-a", "eve", stored, "--project", "")
    assert "No memory has a project" in cli("projects", "-a", "eve").stderr
