"""A sync that fails: nothing is acknowledged, and a later sync that succeeds proves nothing for the bytes of before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.power.checker import cut_power, gaps, record
from tests.power.failing_disk import REFUSED, STORES, behind_a_dead_process
from tests.power.recorder import Recorder
from tests.power.sabotage import SABOTAGES
from tests.power.scenarios import Bob

if TYPE_CHECKING:
    from pathlib import Path

    from tests.power.scenarios import Scenario


@pytest.mark.parametrize("scenario", REFUSED, ids=lambda each: each.__name__)
def test_a_write_whose_sync_fails_is_refused_and_nothing_else_is_lost(scenario: Scenario, tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    events = record(scenario, tmp_path / "base")
    told = [event.path for event in events if event.do == "ack"]
    assert any(event.do == "sync_failed" for event in events)
    if "refused" in told:
        assert (told.count("refused"), told.count("store")) == (1, STORES - 1)
    later = [gap for gap in gaps(events) if not gap.startswith("refused")]
    assert later == [], "an acknowledgement after the failure relies upon bytes that were in it"
    assert cut_power(scenario.__name__, events, tmp_path, seed=1, per_step=3, most=40).failures == []


def test_a_store_that_trusts_a_second_sync_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "base").mkdir()
    with monkeypatch.context() as broken:
        SABOTAGES["trusts_a_second_sync"](broken.setattr)
        events = record(behind_a_dead_process, tmp_path / "base")
    assert gaps(events)
    assert cut_power("behind", events, tmp_path, seed=1, per_step=8, most=300, enough=1).failures


def test_a_file_written_anew_is_the_same_journal_to_everybody(tmp_path: Path) -> None:
    async def scenario(recorder: Recorder) -> None:
        other = Bob(tmp_path)
        await other.store("known before")
        await behind_a_dead_process(tmp_path, recorder)
        assert len([memory async for memory in other.storage.iter_all()]) == 5, "what was refused stays, too"
        assert await other.storage.health() == {"status": "ok"}
        await other.storage.close()

    with Recorder(tmp_path) as recorder:
        asyncio.run(scenario(recorder))
