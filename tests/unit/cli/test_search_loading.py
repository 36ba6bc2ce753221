"""`agent-memory search` says on stderr that a model is being loaded, if that takes a while."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from typing_extensions import override

from agent_memory.cli import search
from agent_memory.cli.screen import OutputScreen
from agent_memory.embeddings import PROVIDERS, Provider
from agent_memory.embeddings.testing import HashEmbedder

if TYPE_CHECKING:
    from agent_memory.embeddings.protocol import Vector
    from tests.unit.cli.conftest import Run

SECONDS = 20.0
"""Until a test fails that waits for another thread."""


class SlowModel(HashEmbedder):
    """A model that is loaded once it was reported to be loading."""

    def __init__(self) -> None:
        super().__init__()
        self.is_reported = threading.Event()

    @override
    def embed_query(self, text: str) -> Vector:
        assert self.is_reported.wait(SECONDS)
        return super().embed_query(text)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowModel:
    """Return the model of the command line, which takes longer than a person waits without a word."""
    model, note = SlowModel(), OutputScreen.note

    def noted(screen: OutputScreen, text: str, **options: Any) -> None:
        note(screen, text, **options)
        if text == "loading model …":
            model.is_reported.set()

    monkeypatch.setitem(PROVIDERS, "local", Provider(make=lambda _: model))
    monkeypatch.setattr(OutputScreen, "note", noted)
    monkeypatch.setattr(search, "_NOTE_LOADING_AFTER", 0.05)
    return model


def test_search_of_a_loading_model_reports_it(bob: Run, slow: SlowModel) -> None:
    result = bob("search", "ledger", "--json")
    assert "loading model …" in result.stderr
    assert json.loads(result.stdout)["mode"] == "hybrid"
    assert slow.is_reported.is_set()


def test_search_of_a_loaded_model_reports_nothing(bob: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROVIDERS, "local", Provider(make=lambda _: HashEmbedder()))
    monkeypatch.setattr(search, "_NOTE_LOADING_AFTER", SECONDS)
    assert "loading model" not in bob("search", "ledger").stderr


def test_search_with_wait_embeds_all_texts_first(bob: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    model = HashEmbedder()
    monkeypatch.setitem(PROVIDERS, "local", Provider(make=lambda _: model))
    assert "waits" not in bob("search", "ledger", "--wait").stderr
    assert len(model.embedded) == 3
