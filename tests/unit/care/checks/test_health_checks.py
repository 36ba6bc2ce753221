"""Each look has a level, a sentence with the figure, and what to do about it."""

from __future__ import annotations

import os
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.care.checks import health_checks
from agent_memory.care.checks.codes import CHECKS, Check, Level, by_gravity, worst
from agent_memory.files.layout import folder_of
from agent_memory.knowledge.pipeline.stages import Backlog
from agent_memory.settings import HealthSettings
from agent_memory.storage import Trouble
from tests.rows import check_rows
from tests.support import NOON

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder

SETTINGS = HealthSettings()
OK, WARNING, CRITICAL, UNKNOWN = Level.OK, Level.WARNING, Level.CRITICAL, Level.UNKNOWN
MB = 1_000_000


@pytest.fixture
def folder(root: Path) -> AgentFolder:
    (root / "bob").mkdir(parents=True, mode=0o700)
    root.chmod(0o700)
    return folder_of("bob", root)


def _disk(monkeypatch: pytest.MonkeyPatch, free: int, files: int = 100) -> None:
    system = SimpleNamespace(f_bavail=free, f_frsize=1, f_files=1000, f_favail=files)
    monkeypatch.setattr(os, "statvfs", lambda _: system)


@pytest.mark.parametrize(
    ("free", "level"), [(99 * MB, CRITICAL), (100 * MB, WARNING), (499 * MB, WARNING), (500 * MB, OK)]
)
def test_the_room_left_is_graded(folder: AgentFolder, monkeypatch: pytest.MonkeyPatch, free: int, level: Level) -> None:
    _disk(monkeypatch, free)
    check = health_checks.check_disk(folder, SETTINGS)
    assert (check.level, check.value) == (level, free)
    assert bool(check.advice) is (level is not OK)


def test_room_without_a_free_file_is_critical(folder: AgentFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    _disk(monkeypatch, 10**12, files=0)
    assert health_checks.check_disk(folder, SETTINGS).level is CRITICAL


def test_a_journal_that_could_not_be_compacted_is_a_warning(
    folder: AgentFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_checks, "get_disk_size", lambda path: 300 * MB if path == folder.journal else 0)
    _disk(monkeypatch, 550 * MB)
    check = health_checks.check_disk(folder, SETTINGS)
    assert (check.level, check.warning) == (WARNING, 600 * MB)
    assert "a compaction may need 600 MB" in check.sentence


def test_a_folder_that_is_gone_is_unknown(root: Path) -> None:
    assert health_checks.check_disk(folder_of("nobody", root), SETTINGS).level is UNKNOWN


def test_an_open_folder_is_a_warning_and_a_private_one_is_fine(folder: AgentFolder) -> None:
    assert {check.level for check in health_checks.check_folder(folder, SETTINGS, NOON)[1:]} == {OK}
    folder.path.chmod(0o755)
    files, _ = health_checks.check_folder(folder, SETTINGS, NOON)[1:]
    assert files.level is WARNING
    assert "chmod 700" in files.advice


def test_of_several_concerns_the_worst_is_told_and_the_others_are_counted(folder: AgentFolder) -> None:
    folder.path.chmod(0o755)
    folder.lock.mkdir()
    files, _ = health_checks.check_folder(folder, SETTINGS, NOON)[1:]
    assert files.level is CRITICAL
    assert "The lock cannot be used" in files.sentence
    assert "And 1 more" in files.sentence


def test_an_edit_that_is_kept_is_a_warning(folder: AgentFolder) -> None:
    (folder.path / "scratchpad.broken-20260301T100000.yaml").write_text("x")
    assert [check.level for check in health_checks.check_folder(folder, SETTINGS, NOON)[1:]] == [OK, WARNING]


def test_damaged_lines_are_critical(folder: AgentFolder) -> None:
    check = health_checks.check_journal(folder, {"status": "damaged", "problems": 2, "first_problems": ["line 3: x"]})
    assert (check.level, check.value) == (CRITICAL, 2)
    assert "line 3" not in check.sentence
    assert health_checks.check_journal(folder, {"status": "ok"}).level is OK


def test_an_embedder_that_fails_is_a_warning_and_none_installed_is_told() -> None:
    failing = Trouble("embedder", "embedder_failed", "Search by meaning does not work: x.", "Do this.")
    check = health_checks.check_search([Trouble("audit", "a", "b"), failing])
    assert (check.level, check.sentence, check.advice) == (WARNING, failing.message, "Do this.")
    missing = Trouble("embedder", "no_embedder", "There is no search by meaning: y", "")
    assert health_checks.check_search([missing]) == Check("search", OK, missing.message)
    assert health_checks.check_search([missing, failing]).level is WARNING
    assert health_checks.check_search([]).level is OK


@check_rows(("slow", "level"), [(499.0, OK), (500.0, WARNING), (4999.0, WARNING), (5000.0, CRITICAL)])
def test_one_slow_call_of_twenty_is_no_trouble_and_two_are(slow: float, level: Level) -> None:
    assert health_checks.check_speed({"searches": [1.0] * 19 + [slow]}, SETTINGS).level is OK
    check = health_checks.check_speed({"stores": [2.0], "searches": [1.0] * 18 + [slow, slow]}, SETTINGS)
    assert (check.level, check.value) == (level, slow)
    assert "searches" in check.sentence


def test_nothing_timed_is_no_trouble() -> None:
    assert health_checks.check_speed({"searches": []}, SETTINGS).value is None


@check_rows(("days", "level"), [(6.9, OK), (7, WARNING), (29, WARNING), (30, CRITICAL)])
def test_backups_age(days: float, level: Level) -> None:
    check = health_checks.check_backup(NOON - timedelta(days=days), SETTINGS, NOON)
    assert (check.level, check.value) == (level, days)


def test_no_backup_is_said_and_no_fault() -> None:
    check = health_checks.check_backup(None, SETTINGS, NOON)
    assert (check.level, check.value) == (OK, None)
    assert "No backup" in check.sentence


@check_rows(("hours", "level"), [(23, OK), (24, WARNING), (168, CRITICAL)])
def test_work_that_waits_long_is_told(hours: float, level: Level) -> None:
    waiting = [
        Backlog("items", "resource", due=3, oldest=NOON - timedelta(hours=hours)),
        Backlog("pages", "memory", due=1, oldest=NOON),
    ]
    check = health_checks.check_backlog(waiting, SETTINGS, NOON)
    assert (check.level, check.value) == (level, hours)
    assert check.sentence.startswith("4 records wait for background work, the first since ")


def test_work_that_is_given_up_is_a_warning() -> None:
    ended = [Backlog("items", "resource", failed=1, given_up=1, codes=("no_text",))]
    check = health_checks.check_backlog(ended, SETTINGS, NOON)
    assert (check.level, check.sentence) == (
        WARNING, "1 record failed in background work and is not tried again (no_text)."
    )  # fmt: skip
    assert health_checks.check_backlog([], SETTINGS, NOON).sentence == "No background work waits."


@check_rows(("pairs", "level"), [(0, OK), (1, OK), (19, OK), (20, WARNING)])
def test_pairs_that_wait_are_told_from_the_first_on(pairs: int, level: Level) -> None:
    check = health_checks.check_suspects(pairs, SETTINGS)
    assert (check.level, check.value) == (level, pairs)
    assert bool(check.advice) is bool(pairs)


def test_what_is_bad_comes_before_what_is_unknown_and_that_before_what_is_well() -> None:
    levels: list[Any] = [("suspects", OK), ("disk", UNKNOWN), ("edits", WARNING), ("backup", WARNING), ("speed", OK)]
    found = by_gravity(Check(code, level, "") for code, level in levels)
    assert [check.code for check in found] == ["backup", "edits", "disk", "speed", "suspects"]
    assert worst([OK, UNKNOWN]) is UNKNOWN
    assert worst([UNKNOWN, WARNING]) is WARNING
    assert worst([CRITICAL, UNKNOWN]) is CRITICAL
    assert worst([]) is OK


def test_every_limit_belongs_to_a_check() -> None:
    assert {key for row in CHECKS.values() for key in row.keys} == set(HealthSettings.model_fields)
    assert all(f"`{key}`" in row.warning + row.critical for row in CHECKS.values() for key in row.keys)
