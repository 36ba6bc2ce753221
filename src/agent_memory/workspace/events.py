"""Events of a workspace, without the text of rows."""

from __future__ import annotations

from typing import Final

from agent_memory.memory.events import EventSpec

COMMON: Final = {
    "workspace": "name of the workspace",
    "agent": "agent that made the change; null for a person or a driver",
    "session_id": "ID of the session",
    "timestamp": "time of the event: ISO 8601, UTC",
}
"""Fields of all events. The Amplifier module adds the last two."""

_ATTEMPT: Final = {
    "step": "step as phase/agent/key; null for a row",
    "attempt": "number of the attempt, from 1; 0 for a row",
}

EVENTS: Final = {
    spec.name: spec
    for spec in (
        EventSpec(
            "workspace:row_saved",
            "A row was added.",
            {
                "table": "table of the row",
                "row_id": "ID of the row",
                "proposal": "true if another row has the same unique value",
            },
        ),
        EventSpec("workspace:rows_saved", "Rows were added at once.", {}),
        EventSpec(
            "workspace:row_updated",
            "A row was changed.",
            {"table": "table of the row", "row_id": "ID of the row", "columns": "names of the written columns"},
        ),
        EventSpec("workspace:claimed", "A step was claimed.", {**_ATTEMPT, "owner": "name of the worker"}),
        EventSpec(
            "workspace:finished",
            "A step is done.",
            {**_ATTEMPT, "phase_done": "phase, if it is done too"},
        ),
        EventSpec("workspace:released", "A claim was released; the writes of the attempt are undone.", _ATTEMPT),
        EventSpec(
            "workspace:failed",
            "An attempt failed; its writes are undone.",
            {**_ATTEMPT, "kind": "transient, validation or quality", "left": "number of remaining attempts"},
        ),
        EventSpec(
            "workspace:snapshot_failed",
            "A phase is done, but its snapshot could not be made yet.",
            {"phase": "name of the phase", "code": "error code"},
        ),
        EventSpec(
            "workspace:dump_failed",
            "A snapshot is made, but the copy of the database could not be written.",
            {"snapshot": "name of the snapshot", "code": "error code"},
        ),
        EventSpec(
            "workspace:validated",
            "A finished step was validated.",
            {"step": "step as phase/agent/key", "passed": "true if the step stays done"},
        ),
    )
}
