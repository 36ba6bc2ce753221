"""amplifier-core's own suites, run on the module as a bundle delivers it."""

from __future__ import annotations

from pathlib import Path

import pytest
from amplifier_core.validation import HookValidator
from amplifier_core.validation.behavioral import HookBehaviorTests
from amplifier_core.validation.structural import HookStructuralTests

MODULE = Path(__file__).parents[3] / "modules/hooks-memory-ingestion/amplifier_module_hooks_memory_ingestion"


@pytest.fixture
def module_path() -> Path:
    """Tell amplifier-core's pytest plugin where the module lies."""
    return MODULE


class TestBehavior(HookBehaviorTests):
    """What every hook module must do."""


class TestStructure(HookStructuralTests):
    """How every hook module must be built."""


async def test_the_validator_passes() -> None:
    result = await HookValidator().validate(MODULE)
    assert result.passed, result.errors
