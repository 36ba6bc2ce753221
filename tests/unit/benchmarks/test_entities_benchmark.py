"""The measurement of names counts what it says."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from benchmarks import entities
from benchmarks._entities_baselines import capitalised, within_sentences
from benchmarks._entities_sentences import sentences

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


def test_names_of_other_texts_of_a_project_are_known_and_those_of_others_are_not(tmp_path: Path) -> None:
    file = tmp_path / "texts.jsonl"
    rows = ['{"text": "Wobblecorp Inc pays late.", "project": "p1"}', '{"text": "why does wobblecorp inc not answer"}']
    file.write_text("\n".join([*rows, rows[1][:-1] + ', "project": "p1"}']), encoding="utf-8")
    find = entities.as_ingested([file])
    assert find("why does wobblecorp inc not answer") == [(9, 23, "organisation")]
    assert find("and wobblecorp inc elsewhere") == entities.in_agent_texts("and wobblecorp inc elsewhere")


def test_texts_written_for_this_have_labels_that_lie_in_them() -> None:
    texts = entities.written_texts(entities.WRITTEN)
    assert len(texts) > 200
    assert all(each.text[start:end].strip() == each.text[start:end] for each in texts for start, end, _ in each.names)


def test_sentences_are_read_with_their_text_or_joined(tmp_path: Path) -> None:
    path = tmp_path / "some.iob2"
    rows = "# text = Am See sah Ann Lee.\n1\tAm\tO\t-\n2\tSee\tB-LOC\t-\n3\tsah\tO\t-\n"
    path.write_text(
        rows + "4\tAnn\tB-PER\t-\n5\tLee\tI-PER\t-\n6\t.\tO\t-\n\n0\tan\tO\n1\tRom\tB-LOC\n2\t.\tO\n\n",
        encoding="utf-8",
    )
    assert sentences(path, 9) == [
        ("Am See sah Ann Lee.", [(3, 6, "place"), (11, 18, "person")]),
        ("an Rom .", [(3, 6, "place")]),
    ]
    assert len(sentences(path, 1)) == 1


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
