"""Names for attacks: each is a test, and a row of docs/maintainers/attacks.md. No test.

A mark's name is a row's; `tests/architecture/test_security_page.py` holds marks and rows together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest.mark.structures import MarkDecorator, ParameterSet


def attack(name: str) -> MarkDecorator:
    """Mark a test as the attack of this name."""
    return pytest.mark.attack(name)


def tried(name: str, *values: Any) -> ParameterSet:
    """Return a case of a test that is the attack of this name."""
    return pytest.param(*values, id=name, marks=attack(name))
