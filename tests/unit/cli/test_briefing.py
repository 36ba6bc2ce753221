"""`briefing`: what a session is told before its first answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.cli.conftest import document

if TYPE_CHECKING:
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
    assert "There are no agents" in cli("briefing").stderr


def test_nothing_to_tell_says_so(cli: Run) -> None:
    cli("store", "-a", "eve", "Parcels leave at noon.")
    assert "the session begins with the scratchpad alone" in cli("briefing", "-a", "eve").stderr
    assert "Nothing bears on that" in cli("briefing", "-a", "eve", "--for", "A poem on autumn").stderr
