"""Events of a workspace, without the text of rows."""

from __future__ import annotations

from typing import Final

from agent_memory.memory.events import EventSpec

COMMON: Final = {
    "workspace": "its name",
    "agent": "who did it; null for a person or a driver",
    "session_id": "the session it happened in",
    "timestamp": "ISO 8601, UTC",
}
"""Fields of all events; the module adds the last two."""

_ATTEMPT: Final = {"step": "phase/agent/key; null for a row", "attempt": "its number, from 1; 0 for a row"}

EVENTS: Final = {
    spec.name: spec
    for spec in (
        EventSpec(
            "workspace:row_saved",
            "A row was added.",
            {"table": "its table", "row_id": "its id", "proposal": "whether another row has its unique value"},
        ),
        EventSpec("workspace:rows_saved", "Rows were added at once.", {}),
        EventSpec(
            "workspace:row_updated",
            "A row was changed.",
            {"table": "its table", "row_id": "its id", "columns": "names of what was written"},
        ),
        EventSpec("workspace:claimed", "A step was claimed.", {**_ATTEMPT, "owner": "the worker"}),
        EventSpec("workspace:finished", "A step is done.", {**_ATTEMPT, "phase_done": "the phase, where it is, too"}),
        EventSpec("workspace:released", "A claim was given back; what the attempt wrote is taken back.", _ATTEMPT),
        EventSpec(
            "workspace:failed",
            "An attempt failed; what it wrote is taken back.",
            {**_ATTEMPT, "kind": "transient, validation or quality", "left": "how often it may still be tried"},
        ),
        EventSpec(
            "workspace:snapshot_failed",
            "A phase is done, and its snapshot could not be made yet.",
            {"phase": "the phase", "code": "of the error"},
        ),
        EventSpec(
            "workspace:dump_failed",
            "A snapshot is made, and the copy of the database could not be written.",
            {"snapshot": "its name", "code": "of the error"},
        ),
        EventSpec(
            "workspace:validated",
            "A step that was done was judged.",
            {"step": "phase/agent/key", "passed": "whether it stays done"},
        ),
    )
}
