"""Why memory is off, why an activation is refused, and what has no effect: the words, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.errors import IdentityError
from agent_memory.files.names import CONSENT

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent_memory.integrations.amplifier.identity import Configured


def memory_off(identity: Configured) -> IdentityError:
    """Return why memory is off, and what switches it on."""
    if identity.enabled:
        return IdentityError("Memory is off in this session: no agent is active.")
    by = identity.consent.decided_by()
    is_by_command = CONSENT in by
    how = "Run `agent-memory consent on`." if is_by_command else "Set enabled to true there and start a new session."
    return IdentityError(
        " ".join([f"Memory is off in this session: it is switched off by {by}.", *identity.warnings]),
        code="switched_off",
        recovery=f"{how} Nothing said in this session switches memory on.",
    )


def child_session() -> IdentityError:
    """Return why a sub-session activates nothing."""
    return IdentityError(
        "A sub-session has the memory of the session that started it.",
        code="child_session",
        recovery="Activate an agent in the main session.",
    )


def not_wished(name: str, now: Configured, *, is_heard: bool) -> IdentityError:
    """Return why `name` is not activated.

    Args:
        name: The agent that was asked for.
        now: What is active.
        is_heard: Whether there is a user, as far as is known.
    """
    headless = (
        " Where there is no user to ask, set agent_id in a module's configuration, or agent_identity in the session "
        "section of a bundle."
    )
    return IdentityError(
        f"{f'The memory of {now.agent_id} is active' if now.agent_id else 'No agent is active'}, and the user has not "
        f"asked for {name} in words of their own in this turn.",
        code="needs_user",
        recovery=f"Ask the user to say: start as {name} with memory enabled.{'' if is_heard else headless}",
    )


def ineffective(own: str | None, of_root: Collection[str], delegate: str) -> str | None:
    """Return a warning if a sub-agent is configured with an agent that it does not have from its root."""
    if not own or own.lower() in {name.lower() for name in of_root}:
        return None
    return (
        f"The sub-agent {delegate[:80]!r} is configured with the agent {own!r}, which has no effect: a sub-session has "
        "the memory of the session that started it."
    )
