"""Results of the service: plain values that others render."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from agent_memory.errors import ValidationError
    from agent_memory.models import Episode, Match, Memory, MemorySearchResult, SearchResults, Trace


@dataclass(frozen=True, slots=True)
class Suspect:
    """Two memories that conflict.

    Attributes:
        newer: Memory that was stored or happened later.
        older: Memory that it conflicts with.
        kind: Kind of the difference, see `agent_memory.language.similarity.TextConflict`.
        hint: `replace` if the newer looks like an update of the older, else `conflict`.
        evidence: Short text for the decision.
    """

    newer: Memory
    older: Memory
    kind: str
    hint: Literal["replace", "conflict"]
    evidence: str


@dataclass(frozen=True, slots=True)
class Stored:
    """Outcome of a store.

    Attributes:
        memory: Memory that has the text now.
        in_scratchpad: True if it is in the scratchpad; False also if that is unknown.
        backend: Name of the backend.
        duplicate: True if the text was stored before.
        redacted: Kinds of secrets that were removed.
        degraded: Sentence about what did not work after the store.
        trace: Trace of a memory with the same text that was forgotten for a reason.
        suspects: Conflicts that were found at once.
        replaced: ID of the memory that it supersedes.
        similar: Up to three existing memories to compare; store again with `supersedes` if it replaces one.
        proposal: ID of a replacement that waits for the user's yes; until then both stay.
    """

    memory: Memory
    in_scratchpad: bool
    backend: str
    duplicate: bool = False
    redacted: tuple[str, ...] = ()
    degraded: str | None = None
    trace: Trace | None = None
    suspects: tuple[Suspect, ...] = ()
    replaced: str | None = None
    similar: tuple[Memory, ...] = ()
    proposal: str | None = None

    @property
    def released(self) -> bool:
        """True if this text was forgotten for a reason before."""
        return self.trace is not None


@dataclass(frozen=True, slots=True)
class WrittenMemory:
    """Outcome of a write.

    Attributes:
        memory: Memory that has the text now.
        outcome: `new`; `known`: it existed; `taken_over`: one of low trust became the caller's.
        redacted: Kinds of secrets that were removed.
        suspects: Conflicts that were found at once.
        similar: Memories to compare, best first; None if they are still to be found.
        recent: Candidates for the scratchpad after the write; None if they are still to be read.
        is_compared: False if the comparison is due after the write.
        proposal: ID of the replacement that waits for the user's yes.
    """

    memory: Memory
    outcome: Literal["new", "known", "taken_over"]
    redacted: tuple[str, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    similar: tuple[Memory, ...] | None = ()
    recent: list[Memory] | None = None
    is_compared: bool = True
    proposal: str | None = None


@dataclass(frozen=True, slots=True)
class StoredItems:
    """Outcome of storing items that background work drew from texts.

    Attributes:
        stored: Items that are new.
        known: IDs of items that existed, in whatever version.
        forgotten: IDs of items whose text was forgotten, which stays so.
        refused: By ID, the code of the reason.
    """

    stored: list[Memory] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """Outcome of a search.

    Attributes:
        results: Hits, best first.
        latency_ms: Duration of the search.
        degraded: What did not work, in a sentence or two, once while that lasts.
        replaced: IDs of the replacements of superseded hits, by ID.
        overview: Counts by name if the query has no topic; the hits are then pinned, open and newest memories.
    """

    results: SearchResults
    latency_ms: float
    degraded: str | None = None
    replaced: Mapping[str, str] = field(default_factory=dict)
    overview: Mapping[str, Any] | None = None

    @property
    def near(self) -> list[MemorySearchResult]:
        """Hits near the best, which tools and commands show."""
        return [hit for hit in self.results if hit.is_near]

    @property
    def match(self) -> Match | None:
        """Best grade of the hits; None for a listing."""
        return self.results.match

    @property
    def answer_confidence(self) -> float | None:
        """Evidence of the best hit, for programs of earlier versions."""
        return self.results.answer_confidence

    @property
    def not_known(self) -> bool:
        """True if nothing matches. For programs of earlier versions; read `match`."""
        return self.results.not_known

    @property
    def mode(self) -> str:
        """Search by words, by embeddings or by both."""
        return self.results.mode

    def __len__(self) -> int:
        return len(self.results)

    def __bool__(self) -> bool:
        return True  # an answer without a hit is an answer

    def __iter__(self) -> Iterator[MemorySearchResult]:
        return iter(self.results)


@dataclass(frozen=True, slots=True)
class Promoted:
    """Outcome of a promotion.

    Attributes:
        memory_id: ID of the memory.
        promoted: False if it was in the scratchpad before.
        evicted: ID of the entry that left the scratchpad.
        scratchpad_size: Number of entries.
        degraded: Sentence about what did not work after the promotion.
    """

    memory_id: str
    promoted: bool
    evicted: str | None
    scratchpad_size: int
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class Updated:
    """Outcome of an update.

    Attributes:
        memory: Memory as it is now.
        at: Time of the update.
        fields: Names of changed fields.
        redacted: Kinds of secrets that were removed.
        suspects: Conflicts of a new text that were found at once.
        similar: Up to three existing memories to compare with a new text.
    """

    memory: Memory
    at: datetime
    fields: tuple[str, ...]
    redacted: tuple[str, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    similar: tuple[Memory, ...] = ()


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Outcome of forgetting one memory.

    Attributes:
        memory: Memory as it was.
        older_versions: IDs of its older versions, which were forgotten with it.
        kept_until: How long the text can be restored at least; None if it cannot.
        reason: Reason that is kept as a trace; empty for none.
        talk: IDs of items of talk with the same words, which were forgotten with it.
        statements: IDs of statements that an agent had made of it, which were forgotten with it.
    """

    memory: Memory
    older_versions: tuple[str, ...] = ()
    kept_until: datetime | None = None
    reason: str = ""
    talk: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForgottenMany:
    """Outcome of a request.

    Attributes:
        memories: What was forgotten, as it was.
        older: Older versions that went with them.
        talk: Items of talk with the same words that went with them.
        similar: Similar memories that stay, at most three.
        statements: Statements that an agent had made of forgotten passages, which went with them.
        kept_until: How long the texts can be restored at least; None if they cannot.
        reason: Reason that is kept as a trace; empty for none.
    """

    memories: tuple[Memory, ...]
    older: tuple[Memory, ...] = ()
    talk: tuple[Memory, ...] = ()
    similar: tuple[Memory, ...] = ()
    kept_until: datetime | None = None
    statements: tuple[Memory, ...] = ()
    reason: str = ""

    @property
    def older_versions(self) -> tuple[str, ...]:
        """IDs of the older versions that went with them."""
        return tuple(memory.id for memory in self.older)


@dataclass(frozen=True, slots=True)
class Imported:
    """Outcome of one memory.

    Attributes:
        memory_id: ID of the memory.
        outcome: `stored`; `present`: it existed; `differs`: it exists with another text, which stays; `forgotten`: its
            text was forgotten or purged, which stays so; `refused`.
        redacted: Kinds of secrets that were removed before it was stored.
        lowered: Fields whose claims were not believed.
        error: Why it was refused; with `stored`, why a link to it was.
        raised: With `present`, fields that an earlier import did not believe and this one does.
    """

    memory_id: str
    outcome: Literal["stored", "present", "differs", "forgotten", "refused"]
    redacted: tuple[str, ...] = ()
    lowered: tuple[str, ...] = ()
    error: ValidationError | None = None
    raised: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CaptureOutcome:
    """Outcome of a capture.

    Attributes:
        stored: IDs of stored memories.
        skipped: Number of skipped observations by reason.
        uncompared: IDs of stored memories whose comparison is due.
    """

    stored: list[str] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    uncompared: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Status:
    """Status of one agent's memory."""

    agent_id: str
    backend: str
    counts: dict[str, Any]
    embedder: dict[str, Any]
    health: dict[str, Any]
    last_write: str | None
    suggestions: list[str]
    folder: str | None = None
    encrypted: bool = False


@dataclass(frozen=True, slots=True)
class Briefing:
    """Text for a model, with its sources.

    Attributes:
        text: Text in a fence; empty for none.
        tokens: Estimated tokens, at least the real number.
        memories: Memories in the text; it is void once one of them is forgotten.
        turns: Turns of conversations in the text; as for memories.
        has_passages: True if a part of the text is about the prompt.
    """

    text: str = ""
    tokens: int = 0
    memories: tuple[Memory, ...] = ()
    turns: tuple[Episode, ...] = ()
    has_passages: bool = False
