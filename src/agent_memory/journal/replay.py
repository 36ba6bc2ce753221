"""Apply a change to records: a pure function that readers and compaction share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_memory.journal.format import Change

Records = dict[str, dict[str, Any]]
"""Records of one kind by id."""


def apply_change(records: Records, change: Change, at: str) -> bool:
    """Apply `change`, made at `at` (ISO 8601), to `records` in place; return whether anything changed.

    `put` replaces; `patch` overlays top-level fields, and a field given as null is removed; `delete` removes; `touch`
    adds `data.count` (default 1) to `access_count` and moves `last_accessed`; `mark` is a note and changes nothing.
    All but `put` on an unknown id do nothing.
    """
    if change.op == "put":
        records[change.id] = change.data
        return True
    record = records.get(change.id)
    if record is None or change.op == "mark":
        return False
    if change.op == "delete":
        del records[change.id]
    elif change.op == "patch":
        kept = {key: value for key, value in record.items() if key not in change.data}
        records[change.id] = kept | {key: value for key, value in change.data.items() if value is not None}
    elif change.op == "touch":
        before = record.get("access_count")
        count = (before if isinstance(before, int) else 0) + int(change.data.get("count", 1))
        records[change.id] = {**record, "access_count": count, "last_accessed": at}
    return True
