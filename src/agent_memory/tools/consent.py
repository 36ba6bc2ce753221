"""Consent checks before a model stores, rewords or purges a memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from agent_memory.capture import asks_to_keep, names_memory, says
from agent_memory.errors import ValidationError
from agent_memory.memory.caller import is_commanded, proposal_id
from agent_memory.memory.consent import Mode, strictest
from agent_memory.memory.inbox_access import opened_inbox

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_memory.memory import MemoryService
    from agent_memory.memory.inbox import HeldCandidates
    from agent_memory.models import Memory
    from agent_memory.tools.host_session import HostSession

ASKED: Final = "It waits for the user's yes (`agent-memory review`). Mention it once; do not store it again."
"""Answer of a tool whose text waits in the inbox."""
LOW_TRUST: Final = "a memory of low trust"
"""What brings untrusted text into a conversation when a memory tool shows it."""
_NO_TEXT: Final = frozenset({"pinned", "supersedes", "expires_at"})
"""Fields of a memory in which an update stores no text."""
STORED_BEFORE: Final = "Memories that were stored before stay and can be searched."


def get_mode(session: HostSession, category: str = "") -> Mode:
    """Return the mode for texts of a category in this turn.

    The session checks its sources of consent before it calls a tool.
    """
    return session.current_identity.consent.get_mode(category, session.project())


def describe_consent(session: HostSession) -> dict[str, str | None]:
    """Return consent mode, deciding source and note; None where nothing limits."""
    mode = get_mode(session)
    return {
        "mode": mode if mode != "autonomous" else None,
        "decided_by": session.current_identity.consent.decided_by(project=session.project()) or None,
        "note": STORED_BEFORE if mode == "stopped" else None,
    }


def check_not_stopped(session: HostSession) -> None:
    """Refuse to store a model's text where all storing is stopped.

    Raises:
        ValidationError: The user said so in this conversation, or the project's file cannot be read (`stopped`).
    """
    if get_mode(session) == "stopped":
        raise _build_stopped_error(session)


def _build_stopped_error(session: HostSession) -> ValidationError:
    by = session.current_identity.consent.decided_by(project=session.project())
    return ValidationError(
        f"Nothing was stored: {by} stops all storing. {STORED_BEFORE}",
        code="stopped",
        recovery="Do not try again. The user may say: you can store again."
        if session.consent.is_stopped
        else f"Ask the user to correct {by}.",
    )


async def needs_yes(session: HostSession, content: str, category: str) -> bool:
    """Return True if a person is asked before a text is stored.

    Raises:
        ValidationError: The mode is `manual`, and the user has not asked for it in this turn (`needs_user`); or
            nothing may be stored (`stopped`).
    """
    mode = get_mode(session, category)
    if mode == "stopped":
        raise _build_stopped_error(session)
    turn = session.conversation.of_user
    if mode == "autonomous" or await asyncio.to_thread(asks_to_keep, turn.prompt, content):
        return False
    if mode == "ask":
        return True
    if not turn.is_heard:
        return False  # a program that calls tools itself, without a user whose words could be heard
    raise ValidationError(
        "Nothing was stored: memory is in mode manual here, and the user has not asked for this in this turn.",
        code="needs_user",
        recovery="Store it in a turn in which the user says so, for instance: remember that …",
    )


async def hold_for_yes(
    session: HostSession, service: MemoryService, values: Mapping[str, Any]
) -> HeldCandidates | None:
    """Hold a model's text for a person's yes, or return None.

    None means that it may be stored.

    Args:
        session: Session of the model.
        service: Service of its agent.
        values: Fields of the memory to store.

    Raises:
        ValidationError: As `needs_yes`, or a field is wrong.
        StorageError: The text was not held.
    """
    content, category = str(values["content"]), str(values.get("category", "note"))
    if not await needs_yes(session, content, category):
        return None
    async with opened_inbox(service) as inbox:
        held = await inbox.hold_store(values, session.caller)
    if session.caller.trust != "low":
        session.turn.stored.append(content)
    return held


async def check_rewording(session: HostSession, memory: Memory, changes: Mapping[str, Any]) -> None:
    """Refuse a memory new text that a model may not store.

    Args:
        session: Session of the model.
        memory: Memory before the change.
        changes: New values of its fields.

    Raises:
        ValidationError: The user has not asked for it in this turn (`needs_user`).
    """
    if session.taint.by is not None and memory.trust != "low":
        return  # the service asks for a yes to this very text
    before = memory.model_dump(mode="json")
    texts = {name: value for name, value in changes.items() if name not in _NO_TEXT and value != before.get(name)}
    turn = session.conversation.of_user
    categories = {memory.category, str(texts.get("category", memory.category))}
    mode = strictest([get_mode(session, category) for category in categories])
    if not texts or mode == "autonomous" or (mode == "manual" and not turn.is_heard):
        return
    if texts.keys() == {"content"} and await asyncio.to_thread(_is_said, turn.prompt, texts["content"]):
        return
    if await asyncio.to_thread(names_memory, turn.prompt, memory.id):
        return
    raise ValidationError(
        f"{memory.id} was not changed: memory is in mode {mode} here, and the user has not asked for it in this turn.",
        code="needs_user",
        recovery=f"Ask the user; it is done in a turn in which they say, for instance: correct {memory.id}.",
    )


def _is_said(prompt: str, content: str) -> bool:
    """Return True if a prompt has a text or requests its storage."""
    return asks_to_keep(prompt, content) or says(prompt, content)


async def is_purge_ordered(session: HostSession, memories: Iterable[Memory]) -> bool:
    """Return True if the user agrees to this purge in this turn.

    They answer the proposal of exactly these memories, or name each in a sentence that is only the command to purge
    it. Other words do not count: a purge cannot be undone.
    """
    memories, prompt = list(memories), session.conversation.of_user.prompt
    if session.proposals.is_agreed(_get_purge_proposal(memories)):
        return True
    ordered = [await asyncio.to_thread(is_commanded, prompt, "purge", memory.id) for memory in memories]
    return bool(ordered) and all(ordered)


def propose_purge(session: HostSession, memories: Iterable[Memory]) -> str:
    """Note that a purge is proposed to the user; return its id."""
    return session.proposals.add(_get_purge_proposal(memories), session.session_id)


def _get_purge_proposal(memories: Iterable[Memory]) -> str:
    return proposal_id("purge", sorted(memory.id for memory in memories))
