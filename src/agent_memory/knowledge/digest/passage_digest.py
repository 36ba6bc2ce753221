"""`PassageDigest`: hands out passages and stores statements that agree with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from agent_memory.errors import ValidationError
from agent_memory.knowledge.digest.agreement import find_disagreement, find_lead
from agent_memory.knowledge.facade.shapes import FROM
from agent_memory.knowledge.items.drawn import is_passage, place_of, sources_of
from agent_memory.knowledge.items.forgotten_talk import ForgottenTalk
from agent_memory.knowledge.llm.grounding import place_of as words_at
from agent_memory.models import EPISODE, EVERYTHING, Listing, derived_id, get_duplicate_key, sees, to_text, visible
from agent_memory.redaction import quoted
from agent_memory.service.seeing import is_seen
from agent_memory.service.trust import lowest

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Memory
    from agent_memory.service import Caller, MemoryService

    class HeldText(Protocol):
        """Outcome of holding a text: its ID, or the reason against it."""

        ids: list[str]
        skipped: Counter[str]

    Hold = Callable[[Mapping[str, Any]], Awaitable[HeldText | None]]

DIGEST: Final = "digest"
"""`source.detail` of a statement that a session's agent made of a passage."""
DIGESTED_AT: Final = "digested_at"
"""Key of the metadata of a passage of which statements were made, with the time."""
_GIVEN: Final = frozenset({"id", "timestamp"})
"""Fields that a memory gets when it is stored."""
_MOST_NAMES: Final = 10
MOST_TOKENS: Final = 2_000
"""Estimated tokens of the passages that are handed out at once."""


@dataclass(frozen=True, slots=True)
class QuotedStatement:
    """A statement of an agent, with its passage and its quote.

    Attributes:
        passage: ID of the passage.
        quote: Words copied from the passage.
        text: The statement, which stands by itself.
        is_decision: Whether it says what was decided.
        owner: Who is to do it; a name in the passage.
        date: When it is due, as in the quote.
        entities: Names that it is about; names in the passage.
    """

    passage: str
    quote: str
    text: str
    is_decision: bool = False
    owner: str = ""
    date: str = ""
    entities: Sequence[str] = ()


@dataclass(slots=True)
class DigestOutcome:
    """What became of statements.

    Attributes:
        stored: Items that were stored.
        refused: Texts of refused statements, each with the reason.
        held: Texts of statements that wait for a person's yes.
    """

    stored: list[Memory] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    held: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DuePassages:
    """Passages that are handed out, and how many there are.

    Attributes:
        passages: Passages without statements yet, as many as fit.
        total: Passages of the document.
        digested: Passages of it that have statements.
    """

    passages: Sequence[Memory]
    total: int
    digested: int


class PassageDigest:
    """Makes statements of passages with the agent of a session.

    Args:
        knowledge: Documents of the agent.
        service: Memories of the agent.
    """

    def __init__(self, knowledge: Knowledge, service: MemoryService) -> None:
        self._knowledge, self._service = knowledge, service

    async def hand_out(self, document: str, caller: Caller) -> DuePassages:
        """Return passages of which no statements were made.

        Args:
            document: ID, title, alias or path of a document; an empty one means all documents and talks.
            caller: Session that asks: it gets what it may see.

        Raises:
            ValidationError: No document has that name.
            StorageError: The passages cannot be read.
        """
        passages = await list_passages(self._service, caller)
        forgotten = await ForgottenTalk(self._knowledge, self._service).find_items(passages)
        passages = [passage for passage in passages if passage.id not in forgotten]
        if document:
            named = await self._find_documents(document, caller)
            passages = [passage for passage in passages if not named.isdisjoint(sources_of(passage))]
        due = [passage for passage in passages if DIGESTED_AT not in passage.metadata]
        return DuePassages(_take_first(due), len(passages), len(passages) - len(due))

    async def take_back(
        self, statements: Iterable[QuotedStatement], done: Iterable[str], caller: Caller, hold: Hold | None = None
    ) -> DigestOutcome:
        """Store statements that agree with their quotes; note digested passages.

        Args:
            statements: Statements of the agent.
            done: IDs of passages that say nothing more.
            caller: Session that asks.
            hold: Function that keeps fields of a memory for a person's yes; it returns None if they may be stored.

        Raises:
            ValidationError: A statement may not be stored; none was.
            StorageError: Some may be stored; doing it again stores none twice.
        """
        outcome = DigestOutcome()
        items: dict[str, dict[str, Any]] = {}
        finished = dict.fromkeys(done)
        for statement in statements:
            item, reason = await self._check(statement, caller)
            if reason:
                outcome.refused.append((statement.text, reason))
                continue
            finished[statement.passage] = None
            held = await hold({name: item[name] for name in item.keys() - _GIVEN}) if hold is not None else None
            if held is None:
                items[item["id"]] = item
            elif held.ids:
                outcome.held.append(statement.text)
            else:
                outcome.refused.append((statement.text, f"{next(iter(held.skipped))} already"))
        if items:
            outcome.stored = (await self._service.admin.derived.store(list(items.values()), caller)).stored
        await self._note_digested(finished, caller)
        return outcome

    async def _find_documents(self, word: str, caller: Caller) -> set[str]:
        """Return IDs of the documents and turns that a word names.

        Raises:
            ValidationError: It names none.
        """
        wanted = word.casefold().strip().removeprefix("the ").strip()
        found: set[str] = set()
        every = await self._knowledge.resources.valid()
        records = [record for record in every if sees(caller.group, record.facets)]
        for record in records:
            aliases = record.metadata.get("aliases")
            names = [record.id, record.title, Path(record.title).stem, str(record.metadata.get("path", ""))]
            names += map(str, aliases if isinstance(aliases, list) else ())
            if wanted in {name.casefold().removeprefix("the ").strip() for name in names}:
                found |= {record.id, *(turn.id for turn in await self._knowledge.episodes.linked_to(record.id))}
        if not found:
            known = ", ".join(visible(record.title or record.id) for record in records[-_MOST_NAMES:])
            raise ValidationError(
                f"No document is called {quoted(word)}.",
                code="unknown_document",
                recovery=f"Name one of {known}." if known else "Run agent-memory ingest FILE first.",
            )
        return found

    async def _check(self, statement: QuotedStatement, caller: Caller) -> tuple[dict[str, Any], str]:
        """Return a statement as fields of an item, or a refusal."""
        passage = await self._service.admin.get(statement.passage)
        if passage is None or not is_passage(passage) or not is_seen(passage, caller):
            return {}, "its passage does not exist"
        for source in sources_of(passage):
            text, place = await self._read(source), place_of(passage, source)
            found = words_at(statement.quote, text, *place) if place is not None else None
            if found is None:
                continue
            lead = find_lead(text, found)
            reason = find_disagreement(statement.text, text[slice(*found)], lead, passage.content)
            reason = reason or _check_details(statement, passage.content)
            return ({}, reason) if reason else (_make_item(statement, passage, source, found, caller, self._now()), "")
        return {}, "its quote is not in the passage"

    async def _read(self, source: str) -> str:
        storage = self._knowledge.episodes if source.startswith(EPISODE.prefix) else self._knowledge.resources
        record: Any = await storage.get(source)
        return "" if record is None else await self._knowledge.text_of(record)

    async def _note_digested(self, ids: Iterable[str], caller: Caller) -> None:
        changes: dict[str, dict[str, Any]] = {}
        for passage_id in ids:
            passage = await self._service.admin.get(passage_id)
            if passage is not None and is_passage(passage) and is_seen(passage, caller):
                changes[passage_id] = {"metadata": {**passage.metadata, DIGESTED_AT: self._now()}}
        await self._service.admin.derived.update_many(changes, caller)

    def _now(self) -> str:
        return to_text(self._knowledge.clock())


async def list_passages(service: MemoryService, caller: Caller) -> list[Memory]:
    """Return the passages that a session may see, oldest first.

    Raises:
        StorageError: They cannot be read.
    """
    if not (await service.admin.tally()).items:
        return []
    records = (await service.admin.browse(Listing("oldest", EVERYTHING))).records
    return [record for record in records if is_passage(record) and is_seen(record, caller)]


def _check_details(statement: QuotedStatement, content: str) -> str:
    """Return which detail of a statement its passage lacks, or an empty text."""
    folded = content.casefold()
    for name in (statement.owner, statement.date, *statement.entities):
        if name.strip() and name.strip().casefold() not in folded:
            return f"{name.strip()} is not in the passage"
    return ""


def _make_item(
    statement: QuotedStatement, passage: Memory, source: str, place: tuple[int, int], caller: Caller, now: str
) -> dict[str, Any]:
    details = {"owner": statement.owner.strip(), "due": statement.date.strip(), "entities": list(statement.entities)}
    metadata: dict[str, Any] = {
        "at": [*place],
        "passage": passage.id,
        **{name: value for name, value in details.items() if value},
    }
    for key in ("speaker", "path"):
        if key in passage.metadata:
            metadata[key] = passage.metadata[key]
    text, trust = " ".join(statement.text.split()), lowest(caller.trust, passage.trust, "medium")
    return {
        "id": derived_id("mem-", DIGEST, passage.belongs_to, trust, source, get_duplicate_key(text)),
        "content": text,
        "category": "decision" if statement.is_decision else "note",
        "timestamp": now,
        "observed_at": None if passage.observed_at is None else to_text(passage.observed_at),
        "source": {"kind": "extraction", "detail": DIGEST},
        "trust": trust,
        "group": passage.belongs_to,
        "links": [{"rel": FROM, "id": source}],
        "metadata": metadata,
    }


def _take_first(passages: Sequence[Memory]) -> list[Memory]:
    """Return the first passages that fit into one answer."""
    left = MOST_TOKENS
    taken: list[Memory] = []
    for passage in passages:
        left -= _estimate_tokens(passage.content)
        if taken and left < 0:
            break
        taken.append(passage)
    return taken


def _estimate_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a passage."""
    plain = sum(map(str.isascii, text))
    return 15 + plain // 3 + 2 * (len(text) - plain)
