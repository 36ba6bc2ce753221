"""Sealing that a benchmark does itself, and not a child process beside it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from agent_memory.store import memory_storage as upkeep

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def without_children() -> Iterator[None]:
    """Let no child seal beside what is to be killed, compared or measured: what seals here is called by name."""
    start, upkeep.start_child = upkeep.start_child, lambda command: None  # noqa: ARG005
    try:
        yield
    finally:
        upkeep.start_child = start
