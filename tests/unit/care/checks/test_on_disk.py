"""The log is read to its beginning only where the last day has enough to be unusual."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

from agent_memory.care.checks.codes import Level
from agent_memory.care.checks.health_checks import check_audit, check_folder
from agent_memory.files.layout import folder_of
from agent_memory.models import to_text
from agent_memory.settings import HealthSettings
from tests.support import NOON

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder


def _folder(root: Path, *days: tuple[float, int]) -> AgentFolder:
    """Return a folder in which so many were forgotten so many days ago."""
    folder = folder_of("bob", root)
    folder.path.mkdir(parents=True, mode=0o700)
    lines = [
        json.dumps({"at": to_text(NOON - timedelta(days=ago, seconds=-place)), "event": "memory:forgotten"})
        for ago, count in days
        for place in range(count)
    ]
    folder.audit.write_text("".join(f"{line}\n" for line in lines))
    return folder


def test_an_unusual_hour_is_found_in_the_file(root: Path) -> None:
    assert check_audit(_folder(root, (0.5, 51)), 1000, HealthSettings(), NOON).level is Level.WARNING


def test_usual_days_are_read_from_before_the_last_one(root: Path) -> None:
    check = check_audit(_folder(root, (3, 20), (2, 20), (0.5, 60)), 1000, HealthSettings(), NOON)
    assert (check.level, check.warning) == (Level.OK, 200)


def test_a_few_are_never_unusual_whatever_was_before(root: Path) -> None:
    assert check_audit(_folder(root, (3, 1), (0.5, 50)), 1000, HealthSettings(), NOON).level is Level.OK


def test_nothing_is_said_of_a_folder_that_is_not_there(root: Path) -> None:
    assert check_folder(folder_of("bob", root), HealthSettings(), NOON) == []
