"""Proposals for tidying: expired, repeated, old and unused memories."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.files.wording import counted
from agent_memory.language.similarity import differ_in_meaning
from agent_memory.models import BESIDE, DISTINCT, SUSPECT, TRUST_ORDER, ArchivedMemory, is_told
from agent_memory.times import times_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from agent_memory.care.tidying.cleanup_rules import Importance, LifecycleSettings, RetentionRule
    from agent_memory.models import Memory, TidyAction


LEAST_BUDGET: Final = 10
MOST_BUDGET: Final = 100
"""What a person reads through before saying yes."""
SHARE: Final = 10
"""One of so many memories at most: however wrong a rule is, a run leaves nine tenths where they are."""


@dataclass(frozen=True, slots=True)
class TidySuggestion:
    """Proposal for one memory.

    Attributes:
        action: `archive`, `merge` or `expire`: it goes to the archive; `delete`: it leaves the archive for good.
        memory: Memory at the time of the proposal; changed ones are left out.
        why: Reason in one sentence.
        rule: Rule: `unused`, `too_many`, `retention`, `merged`, `expired` or `old`.
        importance: Importance for the order, 0..1.
        older: Older versions that move with it.
        into: With `merge`, the memory that stays.
    """

    action: TidyAction
    memory: Memory
    why: str
    rule: str
    importance: float
    older: tuple[Memory, ...] = ()
    into: Memory | None = None

    @property
    def chain(self) -> list[Memory]:
        """Moved memories, the newest first."""
        return [self.memory, *self.older]

    @property
    def size(self) -> int:
        """Number of moved memories."""
        return 1 + len(self.older)


@dataclass(frozen=True, slots=True)
class TidyBudget:
    """Maximum number of memories that one run moves."""

    most: int

    @classmethod
    def of(cls, memories: int, chosen: int | None = None) -> TidyBudget:
        """Return the budget; default: a tenth of the memories, 10 to 100."""
        if chosen is not None:
            return cls(chosen)
        return cls(min(MOST_BUDGET, max(LEAST_BUDGET, memories // SHARE)))


@dataclass(frozen=True, slots=True)
class TidyingPlan:
    """Proposals of a run that is not done yet.

    Attributes:
        made_at: Moment of the plan, UTC.
        suggestions: Proposals in order: expired, repeated, least important, deletions from the archive.
        budget: Maximum number of moved memories.
        waiting: Number of memories that are left for another run.
        memories, archived: Number of live and archived memories.
    """

    made_at: datetime
    suggestions: tuple[TidySuggestion, ...]
    budget: TidyBudget
    waiting: int
    memories: int
    archived: int


def within(suggestions: list[TidySuggestion], budget: TidyBudget) -> tuple[list[TidySuggestion], int]:
    """Return proposals that fit the budget, and the number of other memories.

    One with more older versions than a whole run may move would wait forever; it is taken as the only one.
    """
    taken: list[TidySuggestion] = []
    remaining, waiting = budget.most, 0
    for suggestion in suggestions:
        if suggestion.size <= remaining or (suggestion.size > budget.most and not taken):
            taken.append(suggestion)
            remaining -= min(remaining, suggestion.size)
        else:
            waiting += suggestion.size
    return taken, waiting


RETENTION: Final = "retention"
"""Rule of memories that a retention setting archives."""
_ORDER: Final = {"expire": 0, "merge": 1, "archive": 2, "delete": 3}


class MemoryChains:
    """Memories and the older ones that they replaced, which move together.

    An older version would count again if the newer one moved alone, and would survive a forget of it.

    Args:
        memories: All live memories.
        replaced: ID of the newer memory, by ID of each replaced one.
    """

    def __init__(self, memories: Iterable[Memory], replaced: Mapping[str, str]) -> None:
        self.memories = {memory.id: memory for memory in memories}
        self.replaced = replaced

    def heads(self) -> list[Memory]:
        """Return memories that no other one replaces, expired ones too."""
        return [memory for memory in self.memories.values() if memory.id not in self.replaced]

    def of(self, head: Memory) -> list[Memory]:
        """Return a memory and all older ones that it replaced, newest first."""
        chain, older = {head.id: head}, head.supersedes
        while older is not None and older in self.memories and older not in chain:
            if self.replaced.get(older) not in chain:
                break  # it counts, or another memory has replaced it
            chain[older] = self.memories[older]
            older = self.memories[older].supersedes
        return list(chain.values())


class SuggestionBuilder:
    """Suggests for one moment.

    Args:
        memories: All live memories in the order of storing.
        replaced: ID of the newer memory by ID of each replaced one.
        settings: Rules of the agent.
        now: Moment of judging, UTC.
        importance: Returns the importance of a memory, 0..1.
    """

    def __init__(
        self,
        memories: Iterable[Memory],
        replaced: Mapping[str, str],
        settings: LifecycleSettings,
        now: datetime,
        importance: Importance,
    ) -> None:
        self._chains = MemoryChains(memories, replaced)
        self._rules, self._now = settings, now
        self._heads = [head for head in self._chains.heads() if not head.is_item]
        self._importance = importance
        self._linked = {
            link.id
            for memory in self._chains.heads()
            if not memory.is_expired(now)
            for link in memory.links
            if is_told(link.rel) or link.rel == SUSPECT
        }

    def all(self, archived: Sequence[ArchivedMemory]) -> list[TidySuggestion]:
        """Return all suggestions in order, whatever the budget."""
        chosen: dict[str, TidySuggestion] = {}
        keeping: set[str] = set()  # what another one is merged into stays for this run
        for group in (self._find_expired(), self._find_repeated(), self._find_old()):
            for suggestion in group:
                if suggestion.memory.id not in chosen and suggestion.memory.id not in keeping:
                    chosen[suggestion.memory.id] = suggestion
                    keeping |= {suggestion.into.id} if suggestion.into is not None else set()
        suggestions = [*chosen.values(), *self._find_surplus(chosen, keeping), *self._find_deletable(archived)]
        return sorted(suggestions, key=lambda item: (_ORDER[item.action], *self._weight(item.memory)))

    def stays(self, chain: Sequence[Memory], rule: str = "") -> bool:
        """Return True if this rule keeps a memory or an older version."""
        in_use = rule != RETENTION and any(map(self._is_in_use, chain))
        return in_use or any(map(self._is_kept, chain))

    def _find_expired(self) -> Iterator[TidySuggestion]:
        for head in self._heads:
            if head.expires_at is not None and head.is_expired(self._now) and not head.pinned:
                yield self._suggest(head, "expire", "expired", f"its time was over on {head.expires_at:%Y-%m-%d}")

    def _find_repeated(self) -> Iterator[TidySuggestion]:
        if not self._rules.cleanup.merge_duplicates:
            return
        for best, repeats in duplicates(head for head in self._heads if not head.is_expired(self._now)):
            for repeat in repeats:
                if not self.stays(self._chains.of(repeat)):
                    yield self._suggest(repeat, "merge", "merged", _why_merged(best, repeat), into=best)

    def _find_old(self) -> Iterator[TidySuggestion]:
        cleanup = self._rules.cleanup
        for head in self._heads:
            rule = next((retention for retention in self._rules.retention if retention.fits(head)), None)
            if self.stays(self._chains.of(head), RETENTION if rule is not None else ""):
                continue
            unused, importance = self._count_idle_days(head), self._importance(head, self._now)
            if rule is not None:
                if rule.archive_after_days is not None and unused >= rule.archive_after_days:
                    yield self._suggest(head, "archive", RETENTION, _why_retained(unused, rule))
                continue
            is_old = (
                self._count_days(head) >= cleanup.archive_old_entries_days and unused >= cleanup.delete_unaccessed_days
            )
            if is_old and importance < cleanup.min_importance_threshold and not self._is_standing(head):
                yield self._suggest(head, "archive", "unused", self._why(head))

    def _find_surplus(self, chosen: Mapping[str, TidySuggestion], keeping: Collection[str]) -> Iterator[TidySuggestion]:
        most = self._rules.cleanup.max_entries
        total = len(self._chains.memories) - sum(item.size for item in chosen.values())
        if total <= most:
            return
        may_go = [
            head
            for head in self._heads
            if head.id not in chosen
            and head.id not in keeping
            and self._count_idle_days(head) >= self._rules.cleanup.delete_unaccessed_days
            and not self.stays(self._chains.of(head))
            and not any(item.fits(head) and item.archive_after_days is None for item in self._rules.retention)
        ]
        for head in sorted(may_go, key=self._weight):
            if total <= most:
                return
            why = f"there are more than {counted(most, 'memory', 'memories')}; {self._why(head)}"
            suggestion = self._suggest(head, "archive", "too_many", why)
            total -= suggestion.size
            yield suggestion

    def _find_deletable(self, archived: Sequence[ArchivedMemory]) -> Iterator[TidySuggestion]:
        cleanup = self._rules.cleanup
        replaced = {memory.supersedes: memory.id for memory in archived if memory.supersedes is not None}
        chains, max_age = MemoryChains(archived, replaced), cleanup.max_age_days
        for head in chains.heads():
            assert isinstance(head, ArchivedMemory)
            days = (self._now - head.archived_at).days
            keeps = head.pinned or self._is_important(head) or head.rule == "asked"
            is_old = min(self._count_days(head), self._count_idle_days(head)) >= max_age
            if is_old and not keeps and days >= max_age - cleanup.archive_old_entries_days:
                unused, importance = (
                    counted(self._count_idle_days(head), "day"),
                    self._importance(head, self._now),
                )
                why = f"in the archive for {counted(days, 'day')}, not used for {unused}"
                yield TidySuggestion("delete", head, why, "old", importance, tuple(chains.of(head)[1:]))

    def _suggest(self, head: Memory, action: str, rule: str, why: str, into: Memory | None = None) -> TidySuggestion:
        older = tuple(self._chains.of(head)[1:])
        return TidySuggestion(action, head, why, rule, self._importance(head, self._now), older, into)  # type: ignore[arg-type]

    def _is_kept(self, memory: Memory) -> bool:
        """Return True if a memory stays, whatever its age."""
        in_pad = memory.promoted_at is not None and (
            memory.evicted_at is None or memory.evicted_at < memory.promoted_at
        )
        waits = any(link.rel == SUSPECT for link in memory.links)
        return memory.pinned or in_pad or waits or memory.id in self._linked or self._is_important(memory)

    def _is_in_use(self, memory: Memory) -> bool:
        """Return True if a recent access protects it from general rules."""
        opened = memory.last_accessed
        return opened is not None and (self._now - opened).days < self._rules.cleanup.keep_used_days

    def _is_important(self, memory: Memory) -> bool:
        """Return True if its stored importance keeps it."""
        least = self._rules.cleanup.min_importance_threshold
        return memory.importance is not None and memory.importance >= least

    def _is_standing(self, memory: Memory) -> bool:
        """Return True for a trusted preference, which is used without being opened."""
        return memory.category == "preference" and memory.trust != "low"

    def _count_days(self, memory: Memory) -> int:
        """Return days since storing."""
        return (self._now - memory.timestamp).days

    def _count_idle_days(self, memory: Memory) -> int:
        """Return days since the last access or scratchpad entry."""
        moments = (memory.timestamp, memory.last_accessed, memory.promoted_at)
        return (self._now - max(moment for moment in moments if moment is not None)).days

    def _why(self, memory: Memory) -> str:
        """Return the state of a memory for people."""
        importance = self._importance(memory, self._now)
        unused = counted(self._count_idle_days(memory), "day")
        return f"not used for {unused}, importance {importance:.2f}, category {memory.category}"

    def _weight(self, memory: Memory) -> tuple[bool, float, int, str]:
        """Return the sort key: untrusted and least important first."""
        return memory.trust != "low", self._importance(memory, self._now), -self._count_idle_days(memory), memory.id


def _why_merged(best: Memory, repeat: Memory) -> str:
    why = "is newer" if best.trust == repeat.trust else f"has {best.trust} trust"
    return f"says the same as {best.id}, which {'is pinned' if best.pinned else why}"


def _why_retained(unused: int, rule: RetentionRule) -> str:
    return f"not used for {counted(unused, 'day')}; {rule.name} is archived after {rule.archive_after_days}"


_TOKEN: Final = re.compile(r"[^\W_]+(?:[._:/@+'-]?[^\W_]+|_)*|[^\w\s]|_")
_PLAIN: Final = frozenset('.,;:!"()')
"""Characters between words that carry no meaning; all others count."""
_ENDS: Final = frozenset(".!?")
_ARTICLES: Final = frozenset({"the", "a", "an"})
_QUOTES: Final = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
_DECIDED: Final = frozenset({BESIDE, DISTINCT, SUSPECT})
"""Links between memories that wait for a decision or have one."""


def extract_words(text: str) -> tuple[str, ...]:
    """Return the words of a text for comparison; empty without any."""
    words: list[str] = []
    begins = True
    for token in _TOKEN.findall(unicodedata.normalize("NFC", text).translate(_QUOTES)):
        if token in _PLAIN:
            begins = begins or token in _ENDS
            continue
        word = token.lower() if (begins and token[1:].islower()) or token.lower() in _ARTICLES else token
        begins = token in _ENDS
        if word not in _ARTICLES:
            words.append(word)
    return tuple(words)


def duplicates(memories: Iterable[Memory]) -> Iterator[tuple[Memory, list[Memory]]]:
    """Yield the best of each set of repeated memories with the others.

    Only within one group, project, topic and expiry, and without an opposite decision.
    """
    by_words: dict[tuple[object, ...], list[Memory]] = {}
    for memory in memories:
        if words := extract_words(memory.content):
            key = words, memory.belongs_to, memory.project.casefold(), memory.topic, memory.expires_at
            by_words.setdefault(key, []).append(memory)
    for same in by_words.values():
        best, *rest = sorted(same, key=_rank, reverse=True)
        if alike := [memory for memory in rest if _says_the_same(best, memory)]:
            yield best, alike


def _rank(memory: Memory) -> tuple[bool, int, float, str]:
    return memory.pinned, TRUST_ORDER.index(memory.trust), memory.timestamp.timestamp(), memory.id


def _says_the_same(left_memory: Memory, right_memory: Memory) -> bool:
    links, ids = [*left_memory.links, *right_memory.links], {left_memory.id, right_memory.id}
    if any(link.id in ids and link.rel in _DECIDED for link in links):
        return False
    if differ_in_meaning(left_memory.content.lower(), right_memory.content.lower()):
        return False
    return _days(left_memory) == _days(right_memory)


def _days(memory: Memory) -> list[tuple[object, ...]]:
    return [mention.readings for mention in times_in(memory.content, memory.said_at)]
