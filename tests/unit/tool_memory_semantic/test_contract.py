"""The kernel's own validators and suites, on this module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from amplifier_core.testing import MockCoordinator
from amplifier_core.validation import ToolValidator
from amplifier_core.validation.behavioral import ToolBehaviorTests
from amplifier_core.validation.structural import ToolStructuralTests

from amplifier_module_tool_memory_semantic import mount
from tests.rows import check_rows

PACKAGE = Path(__file__).parents[3] / "modules" / "tool-memory-semantic" / "amplifier_module_tool_memory_semantic"
CONFIGURATIONS = [
    None,
    {},
    {"agent_id": "bob"},
    {"agent_id": "../bob"},
    {"tools": 5},
    {"nonsense": 1},
    {"storage_root": ""},
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


@check_rows("config", [*CONFIGURATIONS, [], "text", 5, {"agent_id": ["x"]}, {5: 5}, {"qdrant_url": object()}])
async def test_mount_never_raises_and_cleans_up_twice(config: Any) -> None:
    cleanup = await mount(MockCoordinator(), config)
    await cleanup()
    await cleanup()
