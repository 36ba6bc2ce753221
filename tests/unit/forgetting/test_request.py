"""What a request says: names, identifiers, what is to be kept, and words that say nothing."""

from datetime import UTC, datetime

import pytest

from agent_memory.forgetting import lookups, read_request

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)


def test_a_request_is_read() -> None:
    request = read_request("Please forget everything about Ann's badge K-12 before May, except her desk", NOW)
    assert [term.word for term in request.names] == ["Ann"]
    assert [term.word for term in request.soft] == ["badge"]
    assert [each.forms[0] for each in request.identifiers] == ["k12"]
    assert request.wants_all
    assert len(request.periods) == 1
    assert request.kept is not None
    assert [term.word for term in request.kept.terms] == ["desk"]


def test_a_year_within_an_identifier_is_no_time() -> None:
    assert read_request("invoice inv 2024 001", NOW).periods == ()
    assert len(read_request("the invoices of 2024", NOW).periods) == 1


def test_an_index_is_asked_for_an_identifier_in_several_forms() -> None:
    assert {"k12", "k 12", "k-12"} <= set(lookups(read_request("badge K-12", NOW)))


def test_words_of_asking_say_nothing() -> None:
    assert read_request("please forget all that I told you", NOW).says_nothing
    assert not read_request("forget all that I told you last week", NOW).says_nothing


@pytest.mark.parametrize(
    "text",
    [
        "don't forget Ann's badge",
        "Please do not delete Ann's badge",
        "never forget Ann's badge",
        "You must not ever forget Ann's badge",
        "I don\u2019t want you to forget Ann's badge",
        "Dont forget Ann's badge",
    ],
)
def test_who_asks_that_nothing_be_forgotten_asks_for_nothing(text: str) -> None:
    assert read_request(text, NOW).says_nothing


@pytest.mark.parametrize("text", ["forget that Lea does not eat nuts", "forget that Lea never sold the car"])
def test_a_denial_of_what_is_meant_is_no_denial_of_asking(text: str) -> None:
    assert not read_request(text, NOW).says_nothing


@pytest.mark.parametrize(
    "text",
    ["forget that Ann and Bob keep the spare key", "forget Ann's sick leave in May", "forget where I keep my keys"],
)
def test_keep_and_leave_within_what_is_meant_split_nothing(text: str) -> None:
    assert read_request(text, NOW).kept is None


@pytest.mark.parametrize("join", [", keep", " - keep", ". Please keep", " and leave", " but keep", " keep", " leave"])
def test_keep_and_leave_behind_what_is_meant_say_what_stays(join: str) -> None:
    request = read_request(f"forget Ann's phone{join} her e-mail", NOW)
    assert request.kept is not None
    assert "phone" in request.about
    assert request.kept.about == "e-mail"
