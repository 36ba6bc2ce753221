"""Warnings that hosts would hear twice are said once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.logs import get_logger

if TYPE_CHECKING:
    import pytest


def test_what_is_said_once_is_said_once_per_process_and_content(caplog: pytest.LogCaptureFixture) -> None:
    log = get_logger("agent_memory.test_logs")
    for number in (1, 1, 2):
        log.warning_once("odd", number=number)
        get_logger("agent_memory.test_logs").warning_once("odd", number=number)
    assert [record.getMessage() for record in caplog.records] == ["event=odd number=1", "event=odd number=2"]
