"""Which agent a command is about: names under the storage root. Looks at names, never into memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.errors import IdentityError

if TYPE_CHECKING:
    from pathlib import Path

_LISTED: Final = 20


def choose_agent(name: str | None, root: Path, *, may_be_new: bool) -> str:
    """Return the agent to work on, in its spelling on disk: the one named, or the only one there is.

    Args:
        name: What the user said; None for nothing.
        root: Folder of all agents.
        may_be_new: Whether the command may be the first to write for this agent.

    Raises:
        IdentityError: None is named and there is not exactly one, or the one named does not exist.
        ValidationError: The name cannot name an agent.
        StorageError: The folders cannot be read.
    """
    from agent_memory.files.layout import agents_under
    from agent_memory.storage import folder_of

    known = agents_under(root)
    if name is None:
        return _only(known, root)
    folder = folder_of(name, root)
    if may_be_new or folder.path.exists():
        return folder.agent_id
    raise IdentityError(
        f"There is no agent {name!r} under {root}." + (f" There are: {_listed(known)}." if known else ""),
        code="unknown_agent",
        recovery=f"Check the name and --root; `agent-memory store --agent {name} TEXT` would begin its memory.",
    )


def _only(known: list[str], root: Path) -> str:
    if len(known) == 1:
        return known[0]
    if not known:
        raise IdentityError(
            f"There are no agents under {root} yet.",
            code="no_agents",
            recovery="Begin one with `agent-memory store --agent NAME TEXT`, or name their folder with --root.",
        )
    raise IdentityError(
        f"There are {len(known)} agents under {root}: {_listed(known)}.",
        code="which_agent",
        recovery="Say which one with --agent NAME or the environment variable AGENT_MEMORY_AGENT.",
    )


def _listed(names: list[str]) -> str:
    rest = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {rest} more" if rest > 0 else "")
