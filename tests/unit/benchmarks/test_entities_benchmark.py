"""The measurement of names counts what it says."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from benchmarks import entities
from benchmarks._entities_baselines import capitalised, within_sentences

if TYPE_CHECKING:
    from pathlib import Path

ROWS = "Then\tO\nNew\tB-location\nYork\tI-location\nsaw\tO\n#Bob\tB-person\n\nno\tO\n"


def test_posts_are_read_with_the_places_of_their_names(tmp_path: Path) -> None:
    path = tmp_path / "some.conll"
    path.write_text(ROWS, encoding="utf-8")
    first, second = entities.posts(path)
    assert first.text == "Then New York saw #Bob"
    assert [(first.text[start:end], kind) for start, end, kind in first.names] == [
        ("New York", "place"),
        ("#Bob", "person"),
    ]
    assert second.names == ()


def test_rates_are_of_whole_names_and_kinds_count_when_asked() -> None:
    text = entities.Labelled("Ann met Bob", ((0, 3, "person"), (8, 11, "person")))
    found = [(0, 3, "place"), (4, 7, "person")]
    assert entities.rates(entities.counted([text], lambda _: found, typed=False)) == (0.5, 0.5, 0.5)
    assert entities.rates(entities.counted([text], lambda _: found, typed=True)) == (0.0, 0.0, 0.0)


def test_texts_of_agents_fall_into_two_halves_by_their_hash(tmp_path: Path) -> None:
    labels, file = tmp_path / "mentions.jsonl", tmp_path / "texts.jsonl.gz"
    told = [f"Ann met Bob {at}" for at in range(40)]
    lines = [f'{{"sha256": "{entities.hash_of(text)}", "mentions": [[0, 3, "person"]]}}' for text in told]
    labels.write_text("\n".join(lines), encoding="utf-8")
    with gzip.open(file, "wt", encoding="utf-8") as stream:
        stream.write("\n".join(f'{{"text": "{text}"}}' for text in [*told[1:], "Nobody"]))
    texts = entities.agent_texts(labels, [file])
    assert [each.text for each in texts] == told[1:]
    assert texts[0].names == ((0, 3, "person"),)
    assert 0 < sum(each.is_open for each in texts) < 40


def test_intervals_hold_the_rate_and_are_the_same_again() -> None:
    counts = [entities.Counts(1, 2, 2), entities.Counts(2, 2, 3), entities.Counts(0, 1, 1)] * 5
    row = entities.row_of("x", counts, 200, 1)
    assert row == entities.row_of("x", counts, 200, 1)
    assert row["f1_interval"][0] <= row["f1"] <= row["f1_interval"][1]


def test_baselines_find_capitals() -> None:
    assert [(start, end) for start, end, _ in capitalised("Then Bob Lee ran")] == [(0, 12)]
    assert [(start, end) for start, end, _ in within_sentences("Then we met Bob Lee.")] == [(12, 19)]


def test_the_sign_of_a_hashtag_belongs_to_the_name_in_posts() -> None:
    assert [span[:2] for span in entities.in_posts("we fly to #Berlin tomorrow")] == [(10, 17)]
