"""States of a record's deletion, and the verbs between them.

    archive   live -> archived
    forget    live, archived -> forgotten (30 days)
    restore   archived, forgotten -> live
    purge     any -> purged

Each verb but `restore` withdraws what is derived from the record: in a session before the answer, and after a crash by
the background work, which goes by the number of the change.
"""

from __future__ import annotations

from enum import StrEnum, auto
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.errors import UnknownIdError

if TYPE_CHECKING:
    from collections.abc import Mapping


class DeletionState(StrEnum):
    """State of a record; no file has the text of a purged one."""

    LIVE = auto()
    ARCHIVED = auto()
    FORGOTTEN = auto()
    PURGED = auto()


class DeletionVerb(NamedTuple):
    """Verb that changes the state of a record.

    Attributes:
        sources: States in which it is possible.
        refusal: Sentence about a record in another state; `{}` is its ID, `{agent}` the agent.
        hint: What to do about that.
    """

    sources: tuple[DeletionState, ...]
    refusal: str
    hint: str = ""


_LIVE, _ARCHIVED, _FORGOTTEN, _PURGED = DeletionState
VERBS: Final[Mapping[str, DeletionVerb]] = {
    "forget": DeletionVerb((_LIVE, _ARCHIVED), "No memory {}; nothing was forgotten."),
    "restore": DeletionVerb(
        (_LIVE, _ARCHIVED, _FORGOTTEN),
        "{} was purged: it cannot be brought back.",
        "Store it again if it should be known.",
    ),
    "unarchive": DeletionVerb(
        (_ARCHIVED,),
        "{} is not in the archive; nothing was brought back.",
        "`agent-memory archive list` shows what is.",
    ),
    "purge": DeletionVerb(
        tuple(DeletionState),
        "No file of {agent} knows {}; nothing was purged.",
        "`agent-memory list`, `restore` and `archive list` show what there is.",
    ),
}
"""Verbs that name a record; a change of its fields can be taken back as well, so `restore` takes a live one."""


def check_transition(verb: str, state: DeletionState | None, record_id: str, agent: str = "") -> None:
    """Refuse a verb for a record in this state.

    Args:
        verb: Key of `VERBS`.
        state: State of the record; None if it is unknown.
        record_id: ID of the record, as it is shown.
        agent: Name of the agent, for `purge`.

    Raises:
        UnknownIdError: The verb is not possible.
    """
    rule = VERBS[verb]
    if state not in rule.sources:
        raise UnknownIdError(rule.refusal.format(record_id, agent=agent), recovery=rule.hint)


def get_state_after(op: str) -> DeletionState:
    """Return the state of a record after a change of the journal."""
    return {"delete": _FORGOTTEN, "move": _ARCHIVED}.get(op, _LIVE)
