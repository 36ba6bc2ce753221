"""TurnBuffer and CaptureLedger: nothing twice, nothing beyond the cap, every drop counted."""

from __future__ import annotations

from agent_memory.capture import CaptureLedger, TurnBuffer, is_near_duplicate
from agent_memory.models import Observation
from tests.rows import check_rows


def seen(*contents: str) -> list[Observation]:
    """Return observations that say `contents`."""
    return [Observation(content=content, category="note", confidence=0.8) for content in contents]


def test_what_the_model_stored_by_tool_in_the_turn_is_dropped() -> None:
    buffer = TurnBuffer()
    buffer.hold(seen("remember that I prefer dark mode in every editor", "the bank calls at nine"))
    kept, skipped = buffer.release(["User prefers dark mode in every editor"])
    assert [item.content for item in kept] == ["the bank calls at nine"]
    assert skipped == {"stored_by_tool": 1}


def test_a_released_buffer_is_empty() -> None:
    buffer = TurnBuffer()
    buffer.hold(seen("one thing"))
    buffer.release([])
    assert len(buffer) == 0
    assert buffer.release([]) == ([], {})


def test_a_session_captures_nothing_twice() -> None:
    ledger = CaptureLedger(limit=10)
    ledger.admit(seen("the staging database lives in Frankfurt"))
    admitted, dropped = ledger.admit(seen("The staging database lives in Frankfurt now"))
    assert admitted == []
    assert dropped == {"duplicate": 1}


def test_a_strangers_words_do_not_keep_the_users_out_of_the_session() -> None:
    ledger = CaptureLedger(limit=10)
    said = seen("the staging database lives in Frankfurt")
    ledger.admit([item.model_copy(update={"trust": "low"}) for item in said])
    admitted, _ = ledger.admit([item.model_copy(update={"trust": "high"}) for item in said])
    assert len(admitted) == 1


def test_a_correction_in_the_same_session_is_admitted() -> None:
    ledger = CaptureLedger(limit=10)
    ledger.admit(seen("the staging database lives in Frankfurt"))
    assert len(ledger.admit(seen("the staging database never lives in Frankfurt"))[0]) == 1


def test_a_session_captures_no_more_than_its_limit() -> None:
    ledger = CaptureLedger(limit=2)
    admitted, dropped = ledger.admit(seen("alpha one", "beta two", "gamma three"))
    assert len(admitted) == 2
    assert dropped == {"session_limit": 1}


def test_a_limit_of_zero_captures_nothing() -> None:
    assert CaptureLedger(limit=0).admit(seen("alpha one"))[0] == []


def test_outcomes_are_counted() -> None:
    ledger = CaptureLedger(limit=9)
    ledger.count(2, {"forgotten": 1})
    ledger.count(1, {"forgotten": 2})
    assert (ledger.captured, ledger.skipped["forgotten"]) == (3, 3)


@check_rows(
    ("one", "other"),
    [
        ("Deploys happen on Tuesdays and Thursdays", "deploys happen on tuesdays and thursdays too"),
        ("今後はコミットメッセージを英語で書いて", "今後はコミットメッセージを英語で書いてください"),
        ("the", "the"),
    ],
)
def test_contained_words_make_a_near_duplicate(one: str, other: str) -> None:
    assert is_near_duplicate(one, other)
    assert is_near_duplicate(other, one)


@check_rows(
    ("one", "other"),
    [
        ("we use tabs in Go", "we use spaces in Python"),
        ("the bank calls at nine", "the bank closes at five on Fridays"),
        ("the", "a"),
    ],
)
def test_other_words_do_not(one: str, other: str) -> None:
    assert not is_near_duplicate(one, other)
