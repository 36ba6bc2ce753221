"""Numpy if it is installed: a search by words works without."""

from __future__ import annotations

from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1)
def numpy_if_there() -> Any:
    """Return numpy, or None if no extra that needs it is installed."""
    try:
        import numpy as np
    except ImportError:
        return None
    return np
