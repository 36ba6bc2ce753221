"""Quotes of what the user typed: what replaces a statement of theirs, and what only looks like it."""

from __future__ import annotations

from agent_memory.capture import find_quote, share_topic
from tests.rows import check_rows

RULE = "We never push to main without a review."
NEW = "Pushing straight to main is fine."


@check_rows(
    ("prompt", "content", "replaced"),
    [
        (NEW, NEW, RULE),
        ("No, pushing straight to main is fine.", NEW, RULE),
        ("Actually pushing straight to main is fine now.", NEW, RULE),
        ("From now on push freely to main.", "Push freely to main", RULE),
        ("By the way, I moved to Berlin and I live in Berlin now.", "I live in Berlin now.", "I live in Paris."),
        ("By the way, I live in Berlin since May.", 'The user moved: "I live in Berlin".', "I live in Paris"),
        ("I moved to Zurich last week.", "I moved to Zurich last week.", "I live in Bern."),
        ("I've just moved to Zurich", "The user moved to Zurich.", "I live in Bern."),
        ("Remember that I moved to Zurich", "The user moved to Zurich.", "I live in Bern."),
        ("Thanks! I live in Basel now.", "The user lives in Basel.", "I live in Bern."),
        ("I no longer live in Bern. I live in Basel.", "The user lives in Basel.", "I live in Bern."),
        ("I now live in Basel, please update that.", "The user lives in Basel.", "I live in Bern."),
        ("I moved, my address is 12 Seestrasse.", "The user's address is 12 Seestrasse.", "My address is 5 Lime Road."),
        ("The release is on 2026-12-05.", "The release is on 2026-12-05.", "The release is on 2026-12-01."),
        ("We deploy on Fridays.", "We deploy on Fridays.", "We never deploy on Fridays."),
        ("The vault is closed until 3 May 2099.", "The vault is closed until 2099-05-03.", "The vault is open."),
        ("The vault is closed since 3 May 2020.", "The vault is closed since 2020-05-03.", "The vault is open."),
        ("I live in Basel since May.", "The user lives in Basel.", "I live in Bern."),
        ("Ich wohne jetzt in Basel.", "Ich wohne in Basel.", "Ich wohne in Bern."),
        ("Ich wohne in Basel.", "Der Nutzer wohnt in Basel.", "Ich wohne in Bern."),
        ("我住在柏林。", "我住在柏林。", "我住在巴黎。"),
    ],
)
def test_quote_of_a_typed_statement_is_found(prompt: str, content: str, replaced: str) -> None:
    assert find_quote(prompt, content, replaced)


@check_rows(
    "prompt",
    [
        "",
        "Is pushing straight to main fine?",
        "Is pushing straight to main fine",
        "Do you agree that pushing straight to main is fine",
        "It's wrong that pushing straight to main is fine.",
        "I do not think pushing straight to main is fine.",
        "Nobody says pushing straight to main is fine.",
        "Pushing straight to main is not fine.",
        "If pushing straight to main is fine, tell me.",
        "If so, pushing straight to main is fine.",
        "Pushing straight to main is fine if the tests pass.",
        "Pushing straight to main is fine, but not today.",
        "Pushing straight to main is fine? Really?",
        "Traceback:\npushing straight to main is fine\n",
        "Title\n\npushing straight to main is fine\nmore\n\nread this and summarise",
        "Alice wrote that pushing straight to main is fine.",
        "Bob says, pushing straight to main is fine.",
        "According to Bob, pushing straight to main is fine.",
        "For Bob, pushing straight to main is fine.",
        "Pushing straight to main is fine, said Bob.",
        "Pushing straight to main is fine according to Bob",
        "Bob: pushing straight to main is fine",
        "The page says: pushing straight to main is fine.",
        "the readme has a line about pushing straight to main is fine",
        "Fix the typo in the sentence pushing straight to main is fine",
        "Translate into French: pushing straight to main is fine.",
        "rename label to (pushing straight to main is fine)",
        '"pushing straight to main is fine" lol',
        "'pushing straight to main is fine', what a joke",
    ],
)
def test_quote_of_no_statement_of_the_user_is_empty(prompt: str) -> None:
    assert not find_quote(prompt, NEW, RULE)


@check_rows(
    ("prompt", "content", "replaced"),
    [
        ("thanks, please fix the build", "Pushing straight to main is fine, to fix the build.", RULE),
        ("Anna moved to Zurich.", "The user moved to Zurich.", "I live in Bern."),
        ("I could move to Zurich.", "The user moved to Zurich.", "I live in Bern."),
        ("I will never move to Zurich.", "The user moved to Zurich.", "I live in Bern."),
        ("I moved to Zurich.", "The user never moved to Zurich.", "I live in Bern."),
        ("I moved to Zurich last week.", "The user moved to Zurich on 2001-01-01.", "I live in Bern."),
        ("Ich wohne nicht in Basel.", "Ich wohne in Basel.", "Ich wohne in Bern."),
        ("I live in Paris, as you know.", "The user lives in Berlin; I live in Berlin", "I live in Paris"),
        ("I live in Paris.", "I live in Paris, work at Acme.", "I live in Paris and work at Globex."),
        ("I never said we push to main and we deploy on Fridays.", "We deploy on Fridays.", "We deploy on Mondays."),
        ("The vault is closed until Friday.", "The vault is closed since Friday.", "The vault is open."),
        ("The vault is closed since 2020.", "The vault is closed until 2099.", "The vault is open."),
        ("The vault is closed until Friday.", "The vault is closed.", "The vault is open."),
        ("The vault is closed.", "The vault is closed until 2099.", "The vault is open."),
    ],
)
def test_quote_that_says_something_else_is_empty(prompt: str, content: str, replaced: str) -> None:
    assert not find_quote(prompt, content, replaced)


@check_rows(
    ("first", "second", "is_shared"),
    [
        ("I live in Berlin", "I live in Paris", True),
        ("I like green tea", RULE, False),
        ("Ich wohne in Basel", "Ich trinke in Ruhe Tee", False),
    ],
)
def test_topic_is_shared_by_a_telling_word(first: str, second: str, is_shared: bool) -> None:
    assert share_topic(first, second) is is_shared
