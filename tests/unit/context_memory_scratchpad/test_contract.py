"""The kernel's own validators and suites, on this module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from amplifier_core.testing import MockCoordinator
from amplifier_core.validation import ContextValidator
from amplifier_core.validation.behavioral import ContextBehaviorTests
from amplifier_core.validation.structural import ContextStructuralTests

from amplifier_module_context_memory_scratchpad import mount
from tests.rows import check_rows

MODULE = Path(__file__).parents[3] / "modules" / "context-memory-scratchpad"
PACKAGE = MODULE / "amplifier_module_context_memory_scratchpad"
CONFIGURATIONS = [None, {}, {"agent_id": "bob"}, {"agent_id": "../bob"}, {"token_budget": "x"}, {"nonsense": 1}]


@pytest.fixture
def module_path() -> Path:
    return PACKAGE


class TestBehavior(ContextBehaviorTests):
    """As the kernel wants context managers to behave."""


class TestStructure(ContextStructuralTests):
    """As the kernel wants context modules to look."""


@pytest.mark.parametrize("config", CONFIGURATIONS)
async def test_the_validator_passes_with_any_configuration(config: Any, home: Path) -> None:
    result = await ContextValidator().validate(PACKAGE, config=config)
    assert result.passed, [check.message for check in result.errors]
    assert list(home.iterdir()) == []


@check_rows("config", [*CONFIGURATIONS, [], "text", 5, {"exclude_categories": 5}, {5: 5}])
async def test_mount_never_raises_and_the_context_works_anyway(config: Any) -> None:
    coordinator = MockCoordinator()
    cleanup = await mount(coordinator, config)
    context = coordinator.get("context")
    await context.add_message({"role": "user", "content": "hello"})
    view = await context.get_messages_for_request()
    assert view.pop() == {"role": "user", "content": "hello"}
    assert [message["metadata"] for message in view] in ([], [{"source": "agent-memory"}])
    await cleanup()
    await cleanup()
