"""Which declared topic a text belongs to, and names of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from agent_memory.knowledge.pages.assignment import DeclaredTopic, nearest
from agent_memory.knowledge.pages.subjects import build_name

if TYPE_CHECKING:
    from agent_memory.embeddings.protocol import Matrix

DECLARED = (
    DeclaredTopic("deployment", "How releases are made, rolled back and deployed to servers"),
    DeclaredTopic("food", "Meals, recipes, restaurants"),
)


def test_nearest_without_vectors_compares_words() -> None:
    assert nearest(["Releases go to the servers at nine", "She cooks recipes", "The sky is blue"], DECLARED) == [
        "deployment", "food", "",
    ]  # fmt: skip


def test_nearest_with_vectors_takes_whole_and_nearest_phrase() -> None:
    def embed(texts: list[str]) -> Matrix:
        rows = [[1.0, 0.0] if {"releases", "nine"} & set(text.casefold().split()) else [0.0, 1.0] for text in texts]
        return np.array(rows, dtype=np.float32)

    assert nearest(["at nine"], DECLARED, embed) == ["deployment"]
    assert nearest(["at nine"], DECLARED[1:], embed) == [""]


def test_nearest_without_topics_names_none() -> None:
    assert nearest(["She cooks recipes"], ()) == [""]


def test_build_name_of_titles_is_valid() -> None:
    assert [build_name(title) for title in ("src/app.py", "Größe", "@mara", "3com", "Ω", "C++")] == [
        "src_app_py",
        "groesse",
        "mara",
        "n_3com",
        "",
        "c",
    ]
