"""Groups of a model's fields, by what they are for. Whoever treats some fields alike takes the group from here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from pydantic import BaseModel

IDENTITY: Final = frozenset({"id", "agent_id", "timestamp", "created_by_session"})
"""Given when a record is stored; no change touches them."""

ACCESS: Final = frozenset({"access_count", "last_accessed"})
"""How often it was found; counted, never set by a caller."""

PLACE: Final = frozenset({"pinned", "expires_at", "promoted_at", "evicted_at"})
"""Where and how long it is shown: they say nothing, so whoever changes them makes no statement."""

ESTIMATES: Final = frozenset({"confidence", "importance"})
"""Numbers about what it says."""


def offered_fields(model: type[BaseModel]) -> dict[str, tuple[Any, str]]:
    """Return the fields that tools and commands offer and show as the model declares them: those with a description.

    Each with the type of an argument that may be left out, and its description, which is what an agent and the help of
    a command read. A field of which they say more, such as tags that are added and taken away, has none; its arguments
    and options are written out.
    """
    return {
        name: (cast("Any", field.annotation) | None, field.description)
        for name, field in model.model_fields.items()
        if field.description
    }


def offered_values(record: BaseModel) -> dict[str, Any]:
    """Return what a record says in such fields, as JSON has it; those at their default are left out."""
    return record.model_dump(mode="json", include=set(offered_fields(type(record))), exclude_defaults=True)
