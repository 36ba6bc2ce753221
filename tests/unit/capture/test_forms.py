"""How much of what people say for good is heard, and how often what is said for the moment is taken for it.

Tables of invented messages in `forms/`, one a line: a category, or `-` for what is not to be kept, a tab, the text. In
the first two each statement is followed by a message of this moment with the same words. The rules were written to
`first.tsv`; `second.tsv`, `requests.tsv` and `third.tsv` were scored once and then learned from; nothing was learned
from `fourth.tsv`, and nothing should be. docs/benchmarks.md has the first scores.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from agent_memory.capture import Extractor
from agent_memory.settings import CaptureSettings
from tests.rows import check_rows

TABLES = Path(__file__).parent / "forms"
EXTRACTOR = Extractor(CaptureSettings())


class Line(NamedTuple):
    """A message, and the category of what is worth a memory in it ("-": nothing)."""

    category: str
    text: str


def table(name: str) -> list[Line]:
    """Return the lines of a table."""
    lines = (TABLES / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    return [Line(*line.split("\t")) for line in lines]


def kept(line: Line) -> list[str]:
    """Return the categories of what is captured of a line."""
    return [observation.category for observation in EXTRACTOR.extract(line.text, "user")]


@check_rows(("name", "share"), [("first", 0.95), ("second", 0.95), ("third", 0.8), ("fourth", 0.5)])
def test_a_known_share_of_lasting_statements_is_captured_and_with_their_category(name: str, share: float) -> None:
    wanted = [line for line in table(name) if line.category != "-"]
    heard = [line for line in wanted if kept(line)]
    assert len(wanted) > 20
    assert len(heard) >= share * len(wanted), [line.text for line in wanted if line not in heard]
    assert sum(line.category in kept(line) for line in heard) >= 0.7 * len(heard)


@check_rows("name", ["first", "second", "third", "fourth"])
def test_the_same_words_said_for_the_moment_are_hardly_ever_captured(name: str) -> None:
    passing = [line for line in table(name) if line.category == "-"]
    taken = [line.text for line in passing if kept(line)]
    assert len(passing) >= 15
    assert len(taken) <= 0.02 * len(passing), taken


def test_of_sixty_requests_with_such_words_at_most_one_in_thirty_is_captured() -> None:
    requests = table("requests")
    taken = [line.text for line in requests if kept(line)]
    assert len(requests) == 60
    assert len(taken) <= 2, taken


@check_rows(
    ("bare", "proper"),
    [
        ("dont ever edit the generated files", "don't ever edit the generated files"),
        ("im a designer, not a developer", "I'm a designer, not a developer"),
        ("i want you to always ask, thats how i like it", "I want you to always ask, that's how I like it"),
    ],
)
def test_a_contraction_is_understood_without_its_apostrophe(bare: str, proper: str) -> None:
    assert kept(Line("preference", bare)) == kept(Line("preference", proper)) != []


def test_a_short_text_in_a_wide_script_is_long_enough() -> None:
    assert kept(Line("preference", "我喜欢简短的回答")) == ["preference"]
