"""The kinds of record that agents keep, as the registry lists them."""

from __future__ import annotations

from typing import Any, Final

from agent_memory.models import Kind
from agent_memory.registry import KINDS as REGISTERED

KINDS: Final[tuple[Kind[Any], ...]] = tuple(Kind.at(kind.place) for kind in REGISTERED.values())
"""What the doctor, and so the command line, examines by default."""
