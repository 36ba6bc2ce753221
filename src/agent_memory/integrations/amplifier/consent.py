"""Whether a model may store, reword or purge something now: what the mode says, and what the user says in this turn.

Except for `mode_of`, the functions use the consent that `MemorySession.require` or `identity` checked in the same call.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.capture import asks_to_keep, names_memory, says
from agent_memory.errors import ValidationError
from agent_memory.memory.consent_modes import strictest
from agent_memory.memory.inbox_access import opened_inbox
from agent_memory.memory.proposals import is_commanded, proposal_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_memory.integrations.amplifier.session import MemorySession
    from agent_memory.memory import MemoryService
    from agent_memory.memory.consent_modes import Mode
    from agent_memory.memory.inbox import Held
    from agent_memory.models import Memory

Consent = Literal["given", "to_be_asked"]
ASKED: Final = "It waits for the user's yes (`agent-memory review`). Mention it once; do not store it again."
"""Answer of a tool whose text waits in the inbox."""
_NO_TEXT: Final = frozenset({"pinned", "supersedes", "expires_at"})
"""Fields of a memory in which an update stores no text."""
STORED_BEFORE: Final = "Memories that were stored before stay and can be searched."


def mode_of(session: MemorySession, category: str = "") -> Mode:
    """Return the mode for what is said now, of a category or of none, after a check of the files.

    Raises:
        ValidationError: The configured name cannot name an agent.
    """
    session.identity()
    return get_current_mode(session, category)


def get_current_mode(session: MemorySession, category: str = "") -> Mode:
    """Return the mode as last checked in this call."""
    return session.current_identity.consent.get_mode(category, session.project())


def describe_consent(session: MemorySession) -> dict[str, str | None]:
    """Return consent mode, deciding source and note; None where nothing limits."""
    mode = get_current_mode(session)
    return {
        "mode": mode if mode != "autonomous" else None,
        "decided_by": session.current_identity.consent.decided_by(project=session.project()) or None,
        "note": STORED_BEFORE if mode == "stopped" else None,
    }


def check_not_stopped(session: MemorySession) -> None:
    """Refuse to store a model's text where all storing is stopped.

    Raises:
        ValidationError: The user said so in this conversation, or the project's file cannot be read (`stopped`).
    """
    consent, project = session.current_identity.consent, session.project()
    if consent.get_mode(project=project) != "stopped":
        return
    by = consent.decided_by(project=project)
    raise ValidationError(
        f"Nothing was stored: {by} stops all storing. {STORED_BEFORE}",
        code="stopped",
        recovery="Do not try again. The user may say: you can store again."
        if session.consent.is_stopped
        else f"Ask the user to correct {by}.",
    )


async def consent_to_store(session: MemorySession, content: str, category: str) -> Consent:
    """Return consent to store: given, or to be asked of a person.

    Raises:
        ValidationError: The mode is `manual`, and the user has not asked for it in this turn (`needs_user`); or
            nothing may be stored (`stopped`).
    """
    check_not_stopped(session)
    mode = get_current_mode(session, category)
    if mode == "autonomous":
        return "given"
    turn = session.conversation.of_user
    if await asyncio.to_thread(asks_to_keep, turn.prompt, content):
        return "given"
    if mode == "ask":
        return "to_be_asked"
    if not turn.is_heard:
        return "given"  # a program that calls tools itself, without a user whose words could be heard
    raise ValidationError(
        "Nothing was stored: memory is in mode manual here, and the user has not asked for this in this turn.",
        code="needs_user",
        recovery="Store it in a turn in which the user says so, for instance: remember that \u2026",
    )


async def hold_for_yes(session: MemorySession, service: MemoryService, values: Mapping[str, Any]) -> Held | None:
    """Hold a model's text for a person's yes, or return None.

    None means that it may be stored.

    Args:
        session: Session of the model.
        service: Service of its agent.
        values: Fields of the memory that is to be stored.

    Raises:
        ValidationError: As `consent_to_store`, or a field is wrong.
        StorageError: The text was not held.
    """
    content, category = str(values["content"]), str(values.get("category", "note"))
    if await consent_to_store(session, content, category) == "given":
        return None
    async with opened_inbox(service) as inbox:
        held = await inbox.hold_store(values, session.caller)
    if session.caller.trust != "low":
        session.turn.stored.append(content)
    return held


async def check_rewording(session: MemorySession, memory: Memory, changes: Mapping[str, Any]) -> None:
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
    mode = strictest([get_current_mode(session, category) for category in categories])
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
    """Return True if typed words ask to keep a text, or say it."""
    return asks_to_keep(prompt, content) or says(prompt, content)


async def is_purge_ordered(session: MemorySession, memories: Iterable[Memory]) -> bool:
    """Return True if the user agrees to this purge in this turn.

    They answer the proposal of exactly these memories, or name each in a sentence that is only the command to purge
    it. Other words do not count: a purge cannot be undone.
    """
    memories, prompt = list(memories), session.conversation.of_user.prompt
    if session.proposals.is_agreed(_get_purge_proposal(memories)):
        return True
    ordered = [await asyncio.to_thread(is_commanded, prompt, "purge", memory.id) for memory in memories]
    return bool(ordered) and all(ordered)


def propose_purge(session: MemorySession, memories: Iterable[Memory]) -> str:
    """Note that a purge is proposed to the user; return its id."""
    return session.proposals.add(_get_purge_proposal(memories), session.session_id)


def _get_purge_proposal(memories: Iterable[Memory]) -> str:
    return proposal_id("purge", sorted(memory.id for memory in memories))
