"""What scratchpad.yaml shows, compared with what it should show. Takes no lock and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from agent_memory.errors import ValidationError
from agent_memory.files.entries import kind_of, read_regular
from agent_memory.files.yaml_loader import load_yaml
from agent_memory.memory.scratchpad_file import read_edits

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class PadFacts:
    """How scratchpad.yaml stands.

    Attributes:
        state: `broken` is what cannot be read; `edited` has edits that were not taken over yet.
        entries: How many it shows.
        problem: Why it cannot be read.
    """

    state: Literal["missing", "broken", "edited", "stale", "current"]
    entries: int = 0
    problem: str = ""


def inspect_pad(path: Path, size: int, rendered: Callable[[int], str], *, is_empty: bool) -> PadFacts:
    """Return how the file at `path` stands.

    Args:
        path: The file.
        size: Entries at most.
        rendered: Returns what the file should be with so many entries at most.
        is_empty: Whether nothing at all is remembered, so that no entry is right.
    """
    if kind_of(path, follow=True) == "missing":
        return PadFacts("missing")
    try:
        text = read_regular(path).decode("utf-8", "surrogateescape")
        if read_edits(text):
            return PadFacts("edited")
    except ValidationError as error:
        return PadFacts("broken", problem=error.message)
    except OSError as error:
        return PadFacts("broken", problem=f"{path.name} cannot be read: {error}.")
    shown = len(load_yaml(text) or [])
    # A session may have other limits than ours: a full pad is compared with as many entries as it has.
    is_current = text in {rendered(size), rendered(max(1, shown))} or (not shown and is_empty)
    return PadFacts("current" if is_current else "stale", shown)
