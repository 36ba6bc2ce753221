"""Fixtures for tests of privacy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.house import House

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support import FrozenClock


@pytest.fixture
async def bobs(root: Path, clock: FrozenClock) -> AsyncIterator[House]:
    """Bob's memory, which is closed afterwards."""
    house = House(root, clock)
    yield house
    await house.service.close()
