"""The kernel's own validators and suites, on this module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from amplifier_core.testing import MockCoordinator
from amplifier_core.validation import ToolValidator
from amplifier_core.validation.behavioral import ToolBehaviorTests
from amplifier_core.validation.structural import ToolStructuralTests

from amplifier_module_tool_memory_workspace import mount
from tests.rows import check_rows

PACKAGE = Path(__file__).parents[3] / "modules" / "tool-memory-workspace" / "amplifier_module_tool_memory_workspace"
CONFIGURATIONS = [
    None,
    {},
    {"workspace": "nowhere"},
    {"workspace": ""},
    {"tools": 5},
    {"agent": "a b"},
    {"nonsense": 1},
]


@pytest.fixture
def module_path() -> Path:
    return PACKAGE


class TestBehavior(ToolBehaviorTests):
    """As the kernel wants tools to behave."""


class TestStructure(ToolStructuralTests):
    """As the kernel wants tool modules to look."""


@pytest.mark.parametrize("config", CONFIGURATIONS)
async def test_the_validator_passes_with_any_configuration(config: Any, home: Path) -> None:
    result = await ToolValidator().validate(PACKAGE, config=config)
    assert result.passed, [check.message for check in result.errors]
    assert list(home.iterdir()) == [], "the host mounts each module on a mock first: nothing may be opened then"


async def test_the_validator_passes_beside_a_workspace_and_opens_nothing(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    result = await ToolValidator().validate(PACKAGE, config={"workspace": str(folder), "tools": ["*"]})
    assert result.passed, [check.message for check in result.errors]
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@check_rows("config", [*CONFIGURATIONS, [], "text", 5, {"agent": ["x"]}, {5: 5}, {"tables": object()}])
async def test_mount_never_raises_and_cleans_up_twice(config: Any) -> None:
    cleanup = await mount(MockCoordinator(), config)
    await cleanup()
    await cleanup()
