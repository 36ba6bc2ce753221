"""Where items belong: a declared topic, else what five of them speak of, else nowhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from agent_memory.knowledge.topics.assignment import UNFILED, Declared, assign, nearest
from agent_memory.knowledge.topics.entities import entities_of, topic_name
from agent_memory.knowledge.topics.items import TopicItem
from agent_memory.knowledge.topics.page import Footnote

if TYPE_CHECKING:
    from agent_memory.embeddings.protocol import Matrix

DECLARED = (
    Declared("deployment", "How releases are made, rolled back and deployed to servers"),
    Declared("food", "Meals, recipes, restaurants"),
)


def items(*texts: str, speaker: str = "") -> list[TopicItem]:
    return [
        TopicItem(f"mem-{at:012x}", text, Footnote(f"epi-{at:012x}", 0, len(text), text), speaker=speaker)
        for at, text in enumerate(texts)
    ]


def filed(*texts: str, speaker: str = "") -> list[tuple[str, ...]]:
    return list(assign(items(*texts, speaker=speaker)).topics.values())


def test_without_vectors_words_decide_and_none_in_common_decides_nothing() -> None:
    assert nearest(["Releases go to the servers at nine", "She cooks recipes", "The sky is blue"], DECLARED) == [
        "deployment", "food", "",
    ]  # fmt: skip


def test_with_vectors_the_mean_of_whole_and_nearest_phrase_decides() -> None:
    def embed(texts: list[str]) -> Matrix:
        rows = [[1.0, 0.0] if {"releases", "nine"} & set(text.casefold().split()) else [0.0, 1.0] for text in texts]
        return np.array(rows, dtype=np.float32)

    assert nearest(["at nine"], DECLARED, embed) == ["deployment"]
    assert nearest(["at nine"], DECLARED[1:], embed) == [""]


def test_what_five_items_name_has_a_page_and_four_do_not() -> None:
    texts = [f"We asked Priya about point {number}" for number in range(5)]

    assert filed(*texts) == [("priya",)] * 5
    assert filed(*texts[:4]) == [(UNFILED,)] * 4


def test_a_word_that_only_begins_sentences_is_no_name() -> None:
    assert filed(*[f"Painting is fun {number}" for number in range(6)]) == [(UNFILED,)] * 6
    assert (
        filed("I met Tidewater people", *[f"Tidewater ships {number}" for number in range(4)]) == [("tidewater",)] * 5
    )


def test_files_hosts_and_handles_are_told_by_their_shape() -> None:
    for text in ("look at src/app.py again", "it runs on api.example.com now", "ask @mara today"):
        assert filed(*[f"{text} {number}" for number in range(5)]) != [(UNFILED,)] * 5, text


def test_what_somebody_says_of_themselves_is_theirs_first() -> None:
    texts = [f"I told Melanie my plan {number}" for number in range(5)]

    assert filed(*texts, speaker="Caroline") == [("caroline", "melanie")] * 5
    assert (
        filed(*[text.replace("I", "They").replace("my", "the") for text in texts], speaker="Caroline")
        == [("melanie", "caroline")] * 5
    )


def test_whom_one_speaks_to_is_no_subject_and_a_short_name_is_the_speakers() -> None:
    theirs = items(*[f"I went there {number}" for number in range(5)], speaker="Melanie")
    mine = [
        replace(item, id=f"mem-{at + 9:012x}", speaker="Caroline")
        for at, item in enumerate(items("Thanks, Mel!", "Mel, my plan is ready", *["I know what Mel did"] * 5))
    ]

    topics = list(assign([*theirs, *mine]).topics.values())[5:]

    assert topics == [("caroline",)] * 2 + [("caroline", "melanie")] * 5


def test_a_declared_topic_goes_before_an_entity() -> None:
    texts = [f"Priya deployed the releases {number}" for number in range(5)]

    assert set(assign(items(*texts), DECLARED).topics.values()) == {("deployment",)}


def test_an_entity_is_written_as_most_items_write_it() -> None:
    found = entities_of(items(*["We use GitHub Actions"] * 4, "We use Github Actions"))

    assert [(each.name, each.title, len(each.items)) for each in found] == [("github_actions", "GitHub Actions", 5)]


def test_names_of_topics_are_what_a_topic_may_be_called() -> None:
    assert [topic_name(form) for form in ("src/app.py", "@mara", "3com", "Ω", "C++")] == [
        "src_app_py",
        "mara",
        "n_3com",
        "",
        "c",
    ]
