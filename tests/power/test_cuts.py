"""The power is cut after each step, what was not synced is lost or not, and the product opens what is left.

`POWER_CUTS=4 POWER_SEED=7 pytest tests/power` cuts four times after every step of every scenario.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.power import deaths, scenarios
from tests.power.checker import cut_power, gaps, record
from tests.power.deaths import AFTER_A_DEATH
from tests.power.sabotage import SABOTAGES
from tests.power.scenarios import ALONE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.power.scenarios import Scenario

PER_STEP = int(os.environ.get("POWER_CUTS", "0"))
SEED = int(os.environ.get("POWER_SEED", "0"))
FEW = 30
"""Cuts of a scenario in an everyday run."""


@pytest.mark.parametrize("scenario", [*ALONE, *AFTER_A_DEATH], ids=lambda each: each.__name__)
def test_what_was_acknowledged_survives_a_power_cut_at_any_step(scenario: Scenario, tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    events = record(scenario, tmp_path / "base")
    report = cut_power(
        scenario.__name__, events, tmp_path, seed=SEED, per_step=PER_STEP or 3, most=0 if PER_STEP else FEW
    )
    assert report.cuts > FEW // 3
    assert report.failures == []


@pytest.mark.parametrize(
    ("sabotage", "scenario"),
    [
        ("no_file_sync", scenarios.first_store),
        ("no_folder_sync", scenarios.first_store),
        ("no_sync", scenarios.changes),
        ("acknowledged_first", scenarios.changes),
        ("renamed_first", scenarios.compactions),
        ("lists_first", scenarios.sealing),
        ("trusts_the_dead", deaths.what_a_dead_process_wrote),
        ("trusts_the_way", deaths.in_folders_nobody_synced),
        ("trusts_the_name", deaths.in_a_compacted_journal_nobody_named),
    ],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
def test_a_store_that_leaves_out_one_sync_is_found_out(
    sabotage: str, scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "base").mkdir()
    with monkeypatch.context() as broken:
        SABOTAGES[sabotage](broken.setattr)
        events = record(scenario, tmp_path / "base")
    assert gaps(events), "the disk model sees no gap"
    report = cut_power(scenario.__name__, events, tmp_path, seed=SEED, per_step=8, most=300, enough=1)
    assert report.failures, "every cut left what was acknowledged"
