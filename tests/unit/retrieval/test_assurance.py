"""What makes an answer sure, and what does not: who vouches for it, and what the words and the vectors can tell."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from agent_memory.embeddings import EmbeddingWorker
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.models import MEMORY, Document, Memory, SearchRequest
from agent_memory.retrieval import DenseIndex, Ranking, SearchIndex
from agent_memory.retrieval.confidence import DEFAULT_LEAST, LIKELY_NONE

NOW = datetime(2026, 1, 30, 12, tzinfo=UTC)
ASKED = "What is the phone number of Mara's dentist?"


def make(number: int, content: str, **fields: Any) -> Document:
    memory = {"agent_id": "bob", "id": f"mem-{number:012x}", "content": content, "timestamp": NOW, **fields}
    return MEMORY.document(Memory.model_validate(memory))


class Embedder(HashEmbedder):
    """One to which all texts without a word look alike, as emoji do to the local model."""

    reads_latin_alone = True


class Asked:
    """An index whose vectors are all there when it is asked.

    Args:
        embedder: None searches by words alone.
    """

    def __init__(self, embedder: HashEmbedder | None) -> None:
        self.worker = EmbeddingWorker(embedder) if embedder is not None else None
        self.index = SearchIndex(vectors=DenseIndex(self.worker) if self.worker is not None else None)

    def put(self, *documents: Document) -> None:
        for document in documents:
            self.index.put(document)

    def search(self, text: str, least: float | None = None) -> Ranking:
        self.index.warm()
        assert self.worker is None or self.worker.drain(20)
        return self.index.search(SearchRequest(text, 5, NOW, min_answer_confidence=least))

    def close(self) -> None:
        if self.worker is not None:
            self.worker.close()


@pytest.fixture(params=["words", "vectors"])
def index(request: pytest.FixtureRequest) -> Iterator[Asked]:
    filled = Asked(Embedder() if request.param == "vectors" else None)
    for number, text in enumerate(("Mara lives in Berlin", "Redis holds sessions", "The ledger is audited in March")):
        filled.put(make(number, text))
    yield filled
    filled.close()


def sure_of(ranking: Ranking) -> float:
    assert ranking.confidence is not None
    return ranking.confidence


def test_words_of_low_trust_are_found_and_make_no_answer_sure(index: Asked) -> None:
    index.put(make(9, f"{ASKED} It is 555-0100", trust="low"))
    found = index.search(ASKED)
    assert found.hits[0].id == make(9, "x").id
    assert found.hits[0].confidence == LIKELY_NONE < DEFAULT_LEAST
    assert sure_of(found) < DEFAULT_LEAST
    assert (found.not_known, found.doubt) == (True, "low_trust")
    assert index.search(ASKED, least=0.1).doubt is None


def test_however_many_they_are(index: Asked) -> None:
    for number in range(9, 30):
        index.put(make(number, f"{ASKED} It is 555-01{number}", trust="low"))
    found = index.search(ASKED)
    assert sure_of(found) < DEFAULT_LEAST
    assert {hit.confidence for hit in found.hits} == {LIKELY_NONE}


def test_a_strangers_words_take_nothing_from_an_answer_that_somebody_vouches_for(index: Asked) -> None:
    index.put(make(8, "The phone number of Mara's dentist is 555-0177"))
    alone = index.search(ASKED)
    assert not alone.not_known
    index.put(make(9, f"{ASKED} It is 555-0100", trust="low"))
    both = index.search(ASKED)
    assert not both.not_known
    assert both.doubt is None
    assert both.hits[0].id == make(8, "x").id
    assert sure_of(both) == pytest.approx(sure_of(alone), abs=0.01)  # one more memory holds these words


@pytest.mark.parametrize("text", [ASKED, "the phone number of mara's dentist??", f"  {ASKED.upper()}\n"])
def test_a_question_is_no_answer_to_itself(index: Asked, text: str) -> None:
    index.put(make(9, text))
    found = index.search(ASKED)
    assert found.hits[0].confidence == LIKELY_NONE
    assert found.not_known
    assert found.doubt == "question"


def test_a_question_that_says_its_answer_is_one(index: Asked) -> None:
    index.put(make(9, f"{ASKED} 555-0100"))
    found = index.search(ASKED)
    assert not found.not_known
    assert found.doubt is None


def test_a_statement_in_the_words_of_a_question_answers_it(index: Asked) -> None:
    assert not index.search("Does Mara live in Berlin?").not_known


@pytest.mark.parametrize("text", ["\U0001f680\U0001f525", "\u6570\u636e\u5e93\u5bc6\u7801\u662f\u4ec0\u4e48", "?!"])
def test_what_a_model_cannot_read_makes_nothing_sure(index: Asked, text: str) -> None:
    for number, known in enumerate(("\U0001f389\U0001f382", "\u732b\u559c\u6b22\u5403\u9c7c", "...")):
        index.put(make(10 + number, known))
    found = index.search(text)
    assert found.not_known
    assert sure_of(found) < DEFAULT_LEAST
    assert all(hit.confidence is not None and hit.confidence < DEFAULT_LEAST for hit in found.hits)


def test_in_any_script_words_that_agree_make_an_answer_sure(index: Asked) -> None:
    index.put(make(10, "\u6570\u636e\u5e93\u7684\u5bc6\u7801\u5728\u4fdd\u9669\u7bb1\u91cc"))
    assert not index.search("\u6570\u636e\u5e93\u5bc6\u7801").not_known


def test_a_model_that_reads_every_script_is_believed() -> None:
    question, note = "\u6570\u636e\u5e93\u5bc6\u7801", "\u732b\u559c\u6b22\u5403\u9c7c"
    found = {}
    for embedder in (Embedder(synonyms={question: note}), HashEmbedder(synonyms={question: note})):
        index = Asked(embedder)
        index.put(make(1, note))
        found[type(embedder)] = index.search(question)
        index.close()
    assert found[Embedder].not_known
    assert not found[HashEmbedder].not_known


def test_a_question_in_another_language_is_not_known_where_nothing_is_found(index: Asked) -> None:
    found = index.search("Wie hei\u00dft der Zahnarzt?")
    assert found.not_known


def test_a_question_without_a_word_is_not_known_and_none_at_all_asks_nothing(index: Asked) -> None:
    for text in ("what is it", "?!", "\U0001f680"):
        found = index.search(text)
        assert found.not_known
        assert sure_of(found) < DEFAULT_LEAST
        assert not index.search(text, least=0).not_known
    for text in ("", " \n"):
        latest = index.search(text)
        assert (latest.confidence, latest.not_known, len(latest.hits)) == (None, False, 3)
        assert {hit.confidence for hit in latest.hits} == {None}
