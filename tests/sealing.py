"""What tests of segments share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from agent_memory.index.segment import NONE

if TYPE_CHECKING:
    from numpy.typing import NDArray


def everybody(_session: NDArray[Any], speaker: NDArray[Any]) -> NDArray[Any]:
    """Take every speaker for one who takes part in a talk."""
    return np.unique(speaker[speaker != NONE])
