"""`WritePath`: a store, a change and a capture, each from what was given to its event."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import pydantic

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.memory.comparing import Comparing, linked
from agent_memory.memory.results import CaptureOutcome, Suspect, Updated
from agent_memory.memory.seeing import check_referred
from agent_memory.memory.trust import SAID, TrustGate, statement_of
from agent_memory.models import (
    MAX_CONTENT_CHARS,
    MAX_TAGS,
    MEMORY,
    Link,
    content_mark,
    is_memory_id,
    is_told,
    may_stand_for,
    rests_on,
)
from agent_memory.models.clock import UtcDatetime
from agent_memory.redaction import quoted
from agent_memory.store.cleaning import joined, make_record, redact_fields, with_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from agent_memory.journal import PurgeList
    from agent_memory.memory.caller import Caller, Report
    from agent_memory.models import Clock, Memory, Observation
    from agent_memory.redaction import Redactor
    from agent_memory.store.cleaning import Aim, Redacted
    from agent_memory.store.memory_storage import MemoryStorage

_NEIGHBOURS: Final = 5
"""Nearest memories that are compared: the nearest of all may be one that does not count."""


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a memory that was to be stored.

    Attributes:
        memory: The one that now says it.
        outcome: `new`: it is one of its own; `known`: it was there; `taken_over`: one of low trust became it.
        redacted: Kinds of secrets that were taken out.
        suspects: What its comparison with others has found; see `Stored`.
        proposal: Id of the replacement that waits for the user's yes; see `Stored`.
        is_compared: Whether that was done; else it is due.
    """

    memory: Memory
    outcome: Literal["new", "known", "taken_over"]
    redacted: tuple[str, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    is_compared: bool = True
    proposal: str | None = None


class WritePath:
    """Changes the memories of one agent; nothing else in the service does, but to forget and to count accesses.

    Args:
        storage: Where they are.
        redactor: Takes secrets out of all text.
        report: Sends events, and notes changes in the audit log.
        clock: Source of the present.
        compares: Whether what is stored is compared with what is known.
        purged: What must never come back by itself.

    Attributes:
        gate: Decides what a caller may change.
        comparing: Compares.
    """

    def __init__(
        self,
        storage: MemoryStorage,
        redactor: Redactor,
        report: Report,
        clock: Clock,
        *,
        compares: bool = True,
        purged: PurgeList | None = None,
    ) -> None:
        self.storage, self.redactor, self.purged = storage, redactor, purged
        self._report, self._clock = report, clock
        self.gate = TrustGate(storage)
        self.comparing = Comparing(storage, report, is_on=compares)

    def to(self, storage: MemoryStorage) -> WritePath:
        """Return the same path to another storage."""
        return WritePath(
            storage, self.redactor, self._report, self._clock, compares=self.comparing.is_on, purged=self.purged
        )

    def is_purged(self, content: str, memory_id: str = "") -> bool:
        """Tell whether a memory of this id, or this text, was purged: it comes back only if somebody stores it anew."""
        return self.purged is not None and (self.purged.names(memory_id) or self.purged.has(content))

    def purged_ids(self) -> set[str]:
        """Return the ids of all records that were purged."""
        return set() if self.purged is None else {one for purge in self.purged.purges() for one in purge.ids}

    async def store(self, values: Mapping[str, Any] | str, caller: Caller) -> Written:
        """Keep a memory; see `MemoryService.store`. `announce` is due once it is known what the scratchpad shows."""
        if isinstance(values, Mapping):
            values = await with_marks(self.storage, values, "stored")
        drafted = await self._draft(values, caller.session_id, caller.project)
        _check_expiry(drafted.value.expires_at, self._clock(), "stored")
        proposal = await self.gate.propose_replacing(drafted.value, caller)
        if proposal is not None:
            drafted = with_fields(drafted, supersedes=None)
        admitted = await self.gate.admit(drafted, caller)
        written = await self._compared(admitted, caller, unique=admitted.value.supersedes is None)
        _note_replaced(written.memory, caller)
        return replace(written, proposal=proposal)

    async def update(
        self,
        memory_id: str,
        changes: Mapping[str, Any],
        caller: Caller,
        *,
        may_have_expired: bool = False,
        expect_seq: int | None = None,
    ) -> Updated:
        """Change fields of a memory; see `MemoryService.update`."""
        given, before = _normalised(changes, "changed"), await self.storage.get(memory_id)
        given = dict(await with_marks(self.storage, given, "changed", before.links if before is not None else ()))
        if before is not None and isinstance(given.get("links"), list):
            given["links"] = ours_kept(given["links"], before.links)
        cleaned = await asyncio.to_thread(redact_fields, MEMORY, given, self.redactor)
        changing = cleaned if before is None else await self.gate.change(before, cleaned, caller)
        if not may_have_expired:
            _check_expiry(changing.value.get("expires_at"), self._clock(), "changed")
        suspects: list[Suspect] = []
        if before is not None and isinstance(content := changing.value.get("content"), str):
            suspects = await self.comparing.of_change(before, content)
        if before is not None and suspects:
            known = before.model_copy(update={"links": changing.value.get("links", before.links)})
            changing = joined(changing, redact_fields(MEMORY, {"links": linked(known, suspects)}))
        after = await self.storage.update(memory_id, changing, expect_seq=expect_seq)
        if "supersedes" in changing.value:
            _note_replaced(after, caller)
        await self.comparing.queued(suspects, caller)
        noticed = dict.fromkeys((*cleaned.value, "trust"))
        fields = [key for key in noticed if before is None or getattr(before, key) != getattr(after, key)]
        if fields:
            await self.changed(memory_id, fields, cleaned.kinds, caller, after)
        return Updated(after, self._clock(), tuple(fields), cleaned.kinds, tuple(suspects))

    async def capture(self, observations: Iterable[Observation], caller: Caller) -> CaptureOutcome:
        """Keep what a hook saw; see `MemoryService.capture`."""
        outcome = CaptureOutcome()
        for observation in observations:
            reason = await self._capture_one(observation, outcome, caller)
            if reason:
                outcome.skipped[reason] = outcome.skipped.get(reason, 0) + 1
        for reason, count in outcome.skipped.items():
            await self._report("memory:capture_skipped", caller, reason=reason, count=count)
        return outcome

    async def announce(
        self, memory: Memory, redacted: Sequence[str], caller: Caller, *, in_scratchpad: bool | None = None
    ) -> None:
        """Report that a memory was stored."""
        await self._report(
            "memory:stored",
            caller,
            memory,
            memory_id=memory.id,
            category=memory.category,
            tag_count=len(memory.tags),
            backend=self.storage.backend,
            in_scratchpad=in_scratchpad,
            supersedes=memory.supersedes,
            redacted=list(redacted),
        )

    async def _draft(self, values: Mapping[str, Any] | str, session_id: str, project: str) -> Redacted[Memory]:
        """Return the memory that `values` make: bounded, validated, without secrets.

        A preference belongs to no project unless it is said to: it is about a person.
        """
        stamp: dict[str, Any] = {"timestamp": self._clock(), "created_by_session": session_id}
        if project and not (isinstance(values, Mapping) and values.get("category") == "preference"):
            stamp["project"] = project
        fields = _normalised(_stamped(values, stamp), "stored")
        return await asyncio.to_thread(make_record, MEMORY, fields, self.storage.agent_id, self.redactor)

    async def _compared(self, drafted: Redacted[Memory], caller: Caller, *, unique: bool) -> Written:
        """Store a memory with what its comparison with others has found."""
        found = await self.comparing.before(drafted)
        written = await self._append(found.draft, caller, unique=unique)
        if written.outcome != "new":
            return written
        await self.comparing.queued(found.suspects, caller)
        return replace(written, suspects=found.suspects, is_compared=found.is_done)

    async def _append(self, drafted: Redacted[Memory], caller: Caller, *, unique: bool) -> Written:
        """Store a memory, with `unique` no second one with the same text.

        One of low trust that says the same becomes the user's by their word: what it had besides goes, and it is
        reported as updated.
        """
        new = drafted.value
        while True:
            known_as = await self.storage.store(drafted, unique=unique)
            if known_as == new.id:
                return Written(new, "new", drafted.kinds)
            known = await self.storage.get(known_as)
            if known is not None and (known.trust != "low" or not await self.gate.may_raise(new, caller)):
                return Written(known, "known", drafted.kinds)
            if known is not None:
                with contextlib.suppress(UnknownIdError):
                    after = await self.storage.update(known.id, statement_of(new))
                    fields = [name for name in SAID if getattr(known, name) != getattr(after, name)]
                    await self.changed(known.id, fields, drafted.kinds, caller, after)
                    return Written(after, "taken_over", drafted.kinds)
            # it was forgotten in between, and the text is to be stored after all

    async def changed(
        self,
        memory_id: str,
        fields: Sequence[str],
        redacted: Sequence[str],
        caller: Caller,
        memory: Memory | None = None,
    ) -> None:
        """Report changed fields of a memory."""
        noted = {"fields": list(fields), "redacted": list(redacted)}
        await self._report("memory:updated", caller, memory, memory_id=memory_id, **noted)

    async def considered(
        self, values: Mapping[str, Any], caller: Caller, session_id: str = "", *, is_callers: bool = False
    ) -> Redacted[Memory] | str:
        """Return the memory that capture would store of `values`, or in a word why it would store nothing.

        Args:
            values: Fields of a memory.
            caller: The session that asks.
            session_id: In which it was said; the caller's when omitted.
            is_callers: The words are the caller's: their trust is at most the caller's, and what they replace has to be
                the caller's to replace.

        Raises:
            UnknownIdError: With `is_callers`: what it replaces or is linked to is not there.
            ValidationError: With `is_callers`: a field is wrong, or the caller may not replace what it replaces.
        """
        if is_callers:
            values = await with_marks(self.storage, values, "stored")
            await check_referred(self.storage, caller, values, "stored")
        try:
            drafted = await self._draft(values, session_id or caller.session_id, caller.project)
        except ValidationError as error:
            if is_callers:
                raise
            return error.code
        content = drafted.value.content
        if self.is_purged(content) or await self.storage.was_forgotten(content):
            return "forgotten"
        if self.purged is not None and self.purged.has_rejected(content):
            return "rejected"
        if await self._is_known(drafted.value):
            return "duplicate"
        if not is_callers:
            return drafted
        if (older := drafted.value.supersedes) is not None and await self.storage.get(older) is None:
            raise UnknownIdError(f"There is no memory {older} to supersede; nothing was stored.")
        return await self.gate.admit(drafted, caller)

    async def _capture_one(self, observation: Observation, outcome: CaptureOutcome, caller: Caller) -> str | None:
        """Store one observation or return why not."""
        drafted = await self.considered(said_in(observation), caller, observation.session_id)
        if isinstance(drafted, str):
            return drafted
        memory = drafted.value
        written = await self._compared(drafted, caller, unique=True)
        if written.outcome == "known":
            return "duplicate"
        outcome.stored.append(written.memory.id)
        if not written.is_compared:
            outcome.uncompared.append(written.memory.id)
        await self._report(
            "memory:captured",
            caller,
            written.memory,
            memory_id=written.memory.id,
            category=memory.category,
            confidence=observation.confidence,
            source=memory.source.kind,
            rule=observation.rule,
            redacted=list(drafted.kinds),
        )
        return None

    async def _is_known(self, memory: Memory) -> bool:
        """Tell whether a memory says this in nearly the same words; one of low trust does not count against others."""
        from agent_memory.capture import is_near_duplicate  # its patterns are for those who capture

        nearest = await self.storage.search(memory.content, _NEIGHBOURS, patience=0)
        return any(
            may_stand_for(found.memory.trust, memory.trust) and is_near_duplicate(found.memory.content, memory.content)
            for found in nearest
        )


def said_in(observation: Observation) -> dict[str, Any]:
    """Return the fields of the memory that an observation would make."""
    return observation.model_dump(exclude={"rule", "cue", "session_id"}, exclude_none=True)


def _normalised(values: Mapping[str, Any], aim: Aim) -> dict[str, Any]:
    """Return `values`, fields of a memory that is to be stored or changed, bounded and normalised.

    Raises:
        ValidationError: Too long, or too many.
    """
    if not isinstance(values, Mapping):
        raise ValidationError(
            f"Nothing was {aim}: the fields of a memory are a mapping, got {type(values).__name__}.",
            recovery="Give them as in {'content': 'Maria likes tea.'}.",
        )
    normal = dict(values)
    _bound(normal, aim)
    if isinstance(normal.get("content"), str):
        normal["content"] = normal["content"].replace("\r\n", "\n").strip()
    if isinstance(normal.get("category"), str):
        normal["category"] = normal["category"].strip().lower()
    return normal


def _stamped(values: Mapping[str, Any] | str, stamp: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a new memory, of which a text alone is the content; the stamp fills what they leave out.

    Raises:
        ValidationError: They are neither text nor a mapping.
    """
    if isinstance(values, str):
        return {**stamp, "content": values}
    if not isinstance(values, Mapping):
        raise ValidationError(
            f"Nothing was stored: a memory is a text or a mapping of its fields, got {type(values).__name__}.",
            recovery="Give it as 'Maria likes tea.' or {'content': 'Maria likes tea.', 'tags': ['drinks']}.",
        )
    return {**stamp, **values}


def _check_expiry(expires_at: object, now: datetime, aim: Aim) -> None:
    """Refuse an end that has passed: the memory would never be found.

    Raises:
        ValidationError: It has passed. A value that is no time is refused with the other fields.
    """
    if expires_at is None:
        return
    try:
        moment = pydantic.TypeAdapter(UtcDatetime).validate_python(expires_at)
    except pydantic.ValidationError:
        return
    if moment <= now:
        raise ValidationError(
            f"Nothing was {aim}: expires_at, {moment:%Y-%m-%d %H:%M} UTC, has passed, so no search would find it.",
            recovery="Name a date to come, or leave it out; to take a memory away, forget it.",
        )


def _bound(values: Mapping[str, Any], aim: Aim) -> None:
    """Refuse by size alone, before anything costs time."""
    content, tags = values.get("content"), values.get("tags")
    if isinstance(content, str) and len(content) > MAX_CONTENT_CHARS:
        raise ValidationError(
            f"Nothing was {aim}: content has {len(content)} characters, at most {MAX_CONTENT_CHARS} are kept.",
            code="too_long",
            recovery="Store the essence, or several memories.",
        )
    if isinstance(tags, list) and len(tags) > MAX_TAGS:
        raise ValidationError(f"Nothing was {aim}: {len(tags)} tags, at most {MAX_TAGS} are kept.", code="too_many")


def _note_replaced(memory: Memory, caller: Caller) -> None:
    if memory.supersedes and caller.trust != "high":
        caller.proposals.note_replaced(memory.supersedes)


async def with_marks(
    storage: MemoryStorage, values: Mapping[str, Any], aim: Aim, before: Sequence[Link] = ()
) -> Mapping[str, Any]:
    """Return fields of a memory whose links to what it is derived from are marked with what that says now.

    New words count as derived from what the sources say now, also where the links stay as they are.

    Args:
        storage: Where the others are.
        values: As given; what is no list of links is refused with the other fields.
        aim: For the error.
        before: The links it has.

    Raises:
        UnknownIdError: There is no memory that a new link names.
        ValidationError: A new link has a relation that only a comparison or a decision may give.
    """
    if not isinstance(values, Mapping):
        return values
    links = values.get("links", list(before) if "content" in values else None)
    if not isinstance(links, list) or not links:
        return values
    _check_relations(links, before, aim)
    ends = [_field(link, "id") for link in links]
    texts = await storage.texts_of([one for one in ends if is_memory_id(one)])
    known = {*texts, *(link.id for link in before)}
    if unknown := [one for one in ends if is_memory_id(one) and one not in known]:
        raise UnknownIdError(f"There is no memory {quoted(unknown[0])} to link to; nothing was {aim}.")
    return {**values, "links": [_marked(link, texts) for link in links]}


def _check_relations(links: Sequence[Any], before: Sequence[Link], aim: Aim) -> None:
    ours = {(link.rel, link.id) for link in before}
    for link in links:
        rel = _field(link, "rel")
        if rel and not is_told(rel) and (rel, _field(link, "id")) not in ours:
            raise ValidationError(
                f"No link can be called {quoted(rel)}: such names tell what is suspect or decided; nothing was {aim}.",
                code="reserved_link",
                recovery="Name the link without a leading `_`.",
            )


def _marked(link: Any, texts: Mapping[str, str]) -> Any:
    text = texts.get(_field(link, "id"))
    if text is None or not rests_on(_field(link, "rel")):
        return link
    return {"rel": _field(link, "rel"), "id": _field(link, "id"), "said": content_mark(text)}


def _field(link: Any, name: str) -> str:
    """Return a field of a link that was given as a mapping or as a `Link`; empty where it is no text."""
    value = link.get(name) if isinstance(link, Mapping) else getattr(link, name, None)
    return value if isinstance(value, str) else ""


def ours_kept(given: Sequence[Any], before: Sequence[Link]) -> list[Any]:
    """Return links as given, with those of ours before that they do not mention: who leaves them out means others."""
    mentioned = {_field(link, "id") for link in given if not is_told(_field(link, "rel"))}
    return [*given, *(link for link in before if not is_told(link.rel) and link.id not in mentioned)]
