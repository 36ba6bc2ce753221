"""Embedders by name: ours, those that another distribution offers, and what is said where there is none."""

from __future__ import annotations

import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from agent_memory import FileStorage, ServiceSettings
from agent_memory.embeddings import (
    PROVIDERS,
    EmbedderIdentity,
    Provider,
    estimate_embedding,
    make_embedder,
    reason_without,
)
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import ConfigurationError
from agent_memory.settings import build_settings
from tests.support import memory_of

if TYPE_CHECKING:
    from pathlib import Path

MODULE = '''
    """An embedder of another distribution: all of it."""

    from agent_memory.embeddings import Provider
    from agent_memory.embeddings.testing import HashEmbedder

    PROVIDER = Provider(
        make=lambda settings: HashEmbedder(settings.embedding_dimensions or 32, {"db": "database"}, model="theirs"),
        needs=("json",),
        seconds_a_text=0.5,
        dollars_per_million={"theirs": 4.0},
    )
    NO_PROVIDER = HashEmbedder
'''


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a distribution of one file and two entry points, one of which leads to something else."""
    site = tmp_path / "site"
    info = site / "their_embedder-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "their_embedder.py").write_text(dedent(MODULE))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-embedder\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[agent_memory.embedders]\ntest = their_embedder:PROVIDER\nodd = their_embedder:NO_PROVIDER\n"
    )
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, "their_embedder", raising=False)


@pytest.mark.usefixtures("distribution")
async def test_another_distributions_embedder_is_used_by_its_name(root: Path) -> None:
    storage = FileStorage("bob", root, settings=ServiceSettings(embedder="test", embedding_dimensions=48))
    await storage.store(memory_of("The ledger is in a PostgreSQL database"))
    await storage.prepare(None)
    found = await storage.search("db")
    assert found.mode == "hybrid"
    assert [hit.match_type for hit in found] == ["vector"]
    await storage.close()
    identity = EmbedderIdentity("test", "theirs", 48)
    assert make_embedder(ServiceSettings(embedder="test")).identity.model == "theirs"  # type: ignore[union-attr]
    assert estimate_embedding(identity, texts=10, characters=4_000_000) == (5.0, 4.0)


@pytest.mark.usefixtures("distribution")
def test_what_is_no_provider_is_refused_with_where_it_came_from() -> None:
    with pytest.raises(ConfigurationError, match="their_embedder:NO_PROVIDER is no Provider"):
        make_embedder(ServiceSettings(embedder="odd"))


@pytest.mark.usefixtures("distribution")
def test_a_name_that_nobody_offers_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigurationError, match=r"local, openai, none, .*test"):
        build_settings("a module", ServiceSettings, {"embedder": "locla"})


def test_a_provider_that_lacks_something_is_told_and_makes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = Provider(make=lambda _: HashEmbedder(), needs=("json", "a_package_that_is_not_installed"))
    monkeypatch.setitem(PROVIDERS, "openai", lacking)
    settings = ServiceSettings(embedder="openai")
    assert make_embedder(settings) is None
    assert "needs a_package_that_is_not_installed" in reason_without(settings)
    assert "pip install" in reason_without(ServiceSettings(embedder="local"))
    assert reason_without(ServiceSettings(embedder="none")) == "embedder is set to none"


def test_an_embedder_that_a_program_hands_in_has_no_estimate() -> None:
    assert estimate_embedding(HashEmbedder().identity, texts=1000, characters=1000) == (0.0, 0.0)
