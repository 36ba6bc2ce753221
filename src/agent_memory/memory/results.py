"""What the service answers. Plain values; modules and the command line shape them for their readers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agent_memory.models import MemorySearchResult, SearchResults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from agent_memory.models import Match, Memory, Surroundings, Trace


@dataclass(frozen=True, slots=True)
class Suspect:
    """Two memories that conflict.

    Attributes:
        newer, older: Which; `newer` was stored or happened later.
        kind: What differs: see `agent_memory.language.conflicts.TextConflict`.
        hint: `replace` when the newer looks like an update of the older, else `conflict`.
        evidence: A short text for whoever decides.
    """

    newer: Memory
    older: Memory
    kind: str
    hint: Literal["replace", "conflict"]
    evidence: str


@dataclass(frozen=True, slots=True)
class Stored:
    """Outcome of a store: the memory that now holds the text, and whether it was there before.

    `degraded` says, in a sentence, what did not work after it was stored, or that it will be found by its words alone.
    When what was shown could not be read, `in_scratchpad` is not known and False. `trace` is that of a memory with the
    same text which was forgotten for a reason.
    `similar` are up to three existing memories to compare with it; store again with `supersedes` if it replaces one.
    `suspects` are older memories that conflict with it, as far as they were found at once. `replaced` is the id of the
    memory that it supersedes. `proposal` is the id under which superseding what the user stated waits for a yes; until
    then both stay.
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
        """True if this text was released before: forgotten for a reason."""
        return self.trace is not None


@dataclass(frozen=True, slots=True)
class Found:
    """Outcome of a search.

    `degraded` says, in a sentence or two, what did not work, once while that lasts. `replaced` says which memories are
    replaced by which, if they were asked for, too, or why others were left out. `overview` has counts by name if the
    query has no topic; the hits are then what is pinned, open tasks and the newest.
    """

    results: SearchResults
    latency_ms: float
    degraded: str | None = None
    replaced: Mapping[str, str] = field(default_factory=dict)
    overview: Mapping[str, Any] | None = None

    @property
    def near(self) -> list[MemorySearchResult]:
        """The hits near the best: what tools and commands show."""
        return [hit for hit in self.results if hit.is_near]

    @property
    def match(self) -> Match | None:
        """Best grade of the hits, "none" without a match; None if nothing was asked."""
        return self.results.match

    @property
    def answer_confidence(self) -> float | None:
        """Raw evidence of the best hit, 0..1. For programs of earlier versions; read `match`."""
        return self.results.answer_confidence

    @property
    def not_known(self) -> bool:
        """True if nothing matches. For programs of earlier versions; read `match`."""
        return self.results.not_known

    @property
    def mode(self) -> str:
        """How it was searched: by words, by embeddings or both."""
        return self.results.mode

    def __len__(self) -> int:
        return len(self.results)

    def __bool__(self) -> bool:
        return True  # an answer without a hit is an answer

    def __iter__(self) -> Iterator[MemorySearchResult]:
        return iter(self.results)


@dataclass(frozen=True, slots=True)
class Promoted:
    """Outcome of a promotion; `promoted` is False if the memory was in the scratchpad before.

    `degraded` says, in a sentence, what did not work after the promotion was stored.
    """

    memory_id: str
    promoted: bool
    evicted: str | None
    scratchpad_size: int
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class Updated:
    """Outcome of an update: the memory as it is now, when, the names of changed fields, kinds of secrets removed."""

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
class CaptureOutcome:
    """What became of candidates: ids stored, and how many were skipped for which reason.

    `uncompared` are those stored that are to be compared with others yet.
    """

    stored: list[str] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    uncompared: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Status:
    """State of one agent's memory, as far as it is known without a search."""

    agent_id: str
    backend: str
    counts: dict[str, Any]
    embedder: dict[str, Any]
    health: dict[str, Any]
    last_write: str | None
    suggestions: list[str]
    folder: str | None = None
    encrypted: bool = False


def answer_of(memory: Memory, around: Surroundings) -> SearchResults:
    """Return what a search answers that asked for one memory by its id, with what is told besides."""
    hit = MemorySearchResult(
        memory=memory, relevance_score=1, match_type="keyword", match="strong", answer_confidence=1, surroundings=around
    )
    return SearchResults([hit], total_found=1, match="strong", answer_confidence=1.0)
