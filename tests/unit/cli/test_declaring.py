"""`topic --declare`: a person says which pages there are to be."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.conftest import document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run

TRAVEL = "Trips, trains, ferries, hotels and what they cost"


@pytest.fixture
def given(cli: Run, tmp_path: Path) -> Run:
    """Eve was given two notes, one of a trip."""
    (tmp_path / "trip.md").write_text("The trains and the ferries of the trip cost 90 euros.")
    (tmp_path / "net.md").write_text("The router is upstairs in the study.")
    cli("ingest", "-a", "eve", str(tmp_path / "trip.md"), str(tmp_path / "net.md"))
    return cli


def test_what_is_like_its_description_is_filed_there_at_once(given: Run) -> None:
    told = given("topic", "-a", "eve", "Travel", "--declare", TRAVEL)
    assert "Declared travel." in told.stderr
    assert told.stdout.startswith("In all: 2 items, 0 on no page; 3 pages in ")
    topics = document(given("topics", "-a", "eve", "--json"))["topics"]
    (listed,) = [topic for topic in topics if topic["declared"]]
    assert (listed["name"], listed["items"], listed["declared"]) == ("travel", 1, True)
    assert "The trains and the ferries" in given("topic", "-a", "eve", "travel").stdout


def test_json_says_what_was_declared(given: Run) -> None:
    declared = document(given("topic", "-a", "eve", "travel", "--declare", TRAVEL, "--json"))
    assert (declared["declared"], declared["unfiled"], declared["pages"]) == ("travel", 0, 3)


@pytest.mark.parametrize(
    ("name", "own"),
    [("Project: Tidewater", "project_tidewater"), ("next.js", "next_js"), ("C++", "c"), ("2026", "n_2026")],
)
def test_topic_with_any_sign_in_its_name_is_declared_and_shown(given: Run, name: str, own: str) -> None:
    assert f"Declared {own}." in given("topic", "-a", "eve", name, "--declare", TRAVEL).stderr
    assert "The trains and the ferries" in given("topic", "-a", "eve", name).stdout


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("travel", TRAVEL, "already exists"),
        ("home", "short", "10 to 500 characters; nothing was declared"),
        ("日本", TRAVEL, "has no letter a to z or digit; nothing was declared"),
    ],
)
def test_what_cannot_be_declared_is_told_and_changes_nothing(given: Run, name: str, text: str, said: str) -> None:
    given("topic", "-a", "eve", "travel", "--declare", TRAVEL)
    failed = given("topic", "-a", "eve", name, "--declare", text, code=1)
    assert said in failed.stderr
    names = [each["name"] for each in json.loads(given("topics", "-a", "eve", "--json").stdout)["topics"]]
    assert names == ["net", "travel", "trip"]
