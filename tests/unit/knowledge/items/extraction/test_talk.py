"""What turns of a talk state, and where."""

from __future__ import annotations

import random

import pytest

from agent_memory.knowledge.items.extraction.claims import Passage
from agent_memory.knowledge.items.extraction.talk import claims_of_talk


def said(*turns: str) -> list[str]:
    """Return the texts of the claims of turns that two people say in turn."""
    return [claim.text for _, claim in claims_of_talk(passages(*turns))]


def passages(*turns: str) -> list[Passage]:
    return [Passage(str(at), text, ("Ann", "Bob")[at % 2]) for at, text in enumerate(turns)]


def test_questions_greetings_thanks_and_approval_are_left_out() -> None:
    assert (
        said("Hi Bob! How are you?", "Thanks, Ann! That's great.", "You're doing an awesome job!", "Wow, nice!") == []
    )


def test_who_speaks_and_the_very_words_are_kept() -> None:
    turn = Passage("t", "Thanks!  I moved to Bern\tin May. Cool, right?", "Lea")
    [(passage, claim)] = claims_of_talk([turn])
    assert (claim.speaker, passage.text[claim.start : claim.end]) == ("Lea", "I moved to Bern\tin May.")
    assert claim.text == "I moved to Bern in May."


def test_a_short_answer_stands_with_its_question() -> None:
    [(passage, claim)] = claims_of_talk(passages("Where did you go?", "To Oslo."))
    assert (claim.text, passage.text[claim.start : claim.end]) == ("(Ann asks: Where did you go?) To Oslo.", "To Oslo.")


@pytest.mark.parametrize("words", ["Scratch that, it broke on Tuesday.", "No, I meant the mast broke on Tuesday."])
def test_what_is_withdrawn_at_once_is_no_claim(words: str) -> None:
    found = said(f"The mast broke on Monday. {words}")
    assert len(found) == 1
    assert "Tuesday" in found[0]
    assert "Monday" not in found[0]


def test_a_withdrawal_takes_nothing_back_but_what_was_said_just_before() -> None:
    assert said("The mast broke on Monday.", "Hm.", "Scratch that.") == []
    assert said("The mast broke on Monday.", "Hm.", "Yes.", "Hm.", "Scratch that.") == ["The mast broke on Monday."]
    assert said("The mast broke on Monday.", "Scratch that.") == ["The mast broke on Monday."]


def test_a_part_that_is_said_anew_stands_with_its_sentence() -> None:
    assert said("I have a cat. No wait, I meant a dog.") == ["I have a cat. No wait, I meant a dog."]
    assert said("When is it?", "The 14th. Wait no, I meant the 15th.") == [
        "(Ann asks: When is it?) The 14th. Wait no, I meant the 15th."
    ]
    assert said("I moved to Bern.", "Really?", "Scratch that, I moved to Basel.") == ["I moved to Basel."]


@pytest.mark.parametrize(
    "denial",
    [
        "No, I never ate peanuts in Bergen.",
        "I applied for the job in Bern, but I didn't get it.",
        "I used to smoke, but not anymore.",
        "I didn't get the promotion by the way.",
        "I'm not just a fan of the Lakers, I play for them.",
    ],
)
def test_a_denial_stays_one(denial: str) -> None:
    assert said(denial) == [denial]


def test_an_approval_keeps_what_it_tells_besides() -> None:
    assert said("That sounds great, my dog Max loved it!") == ["That sounds great, my dog Max loved it!"]
    assert said("Sounds good! See you at the Louvre on Friday.") == ["See you at the Louvre on Friday."]
    assert said('Thanks! "Name of the Wind" is great.') == ['"Name of the Wind" is great.']


def test_of_a_long_sentence_the_clauses_that_tell_stay() -> None:
    kept = "I bought a red Brompton in Leiden last Friday"
    turn = f"{kept}, and it is so great and it makes me feel good about it and all, as I said to them."
    [(passage, claim)] = claims_of_talk([Passage("t", turn, "Lea")])
    assert (claim.text, passage.text[claim.start : claim.end]) == (kept, kept)


def test_what_answers_in_a_word_or_two_stays_before_what_tells_more() -> None:
    found = said("Is it a boy or a girl?", "a girl! we're thinking of calling her Noor, after my late aunt in Tunis")
    assert found == ["a girl! we're thinking of calling her Noor, after my late aunt in Tunis"]
    assert said("Is it a girl?", "omg congrats!!") == []
    assert said("Bob, are you sitting down?", "Oh no.") == []
    assert said("Bob, are you sitting down?", "Yes.") == ["(Ann asks: Are you sitting down?) Yes."]


def test_turns_before_are_context_alone() -> None:
    question, answer = passages("How long have you had the flat?", "Yes, since May.")
    [(passage, claim)] = claims_of_talk([answer], [question])
    assert (passage, claim.text) == (answer, "(Ann asks: How long have you had the flat?) Yes, since May.")


@pytest.mark.parametrize(
    "sentence",
    [
        "Ich habe gestern Fahrrad und Zelt verkauft.",
        "Mi hermana vive en Sevilla desde marzo.",
        "私は京都に住んでいます。",
    ],
)
def test_a_sentence_of_another_language_is_kept_whole(sentence: str) -> None:
    assert said(sentence) == [sentence]


def test_every_quote_lies_in_its_turn() -> None:
    words = [
        "I",
        "moved",
        "to",
        "Bern.",
        "Thanks!",
        "  ",
        "\n",
        "Why?",
        "scratch that,",
        "Dr.",
        "7",
        "🙂",
        "[a photo of x]",
        "私は。",
    ]
    for seed in range(300):
        draw = random.Random(seed)
        turns = [" ".join(draw.choices(words, k=draw.randrange(12))) for _ in range(4)]
        for passage, claim in claims_of_talk(passages(*turns)):
            assert 0 <= claim.start < claim.end <= len(passage.text)
            quote = passage.text[claim.start : claim.end]
            assert quote == quote.strip() != ""
            assert claim.text


@pytest.mark.parametrize(
    "atom", [" ", ".", "a", "?", "! ", "\n", "wow ", "so ", "really so ", "(", "I ", "no, ", "a.b "]
)
def test_a_long_turn_of_one_atom_is_read_whole(atom: str) -> None:
    text = atom * (100_000 // len(atom))
    for passage, claim in claims_of_talk([Passage("q", "Where to?", "Bob"), Passage("t", text, "Ann")]):
        assert claim.end - claim.start <= 1_000
        assert passage.text[claim.start : claim.end]
