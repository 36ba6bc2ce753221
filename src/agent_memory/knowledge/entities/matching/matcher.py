"""Search for the known description of an entity, in four stages."""

from __future__ import annotations

import heapq
import math
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from agent_memory.knowledge.entities.matching.comparison import Comparison, compare
from agent_memory.knowledge.entities.matching.normal_forms import initials, list_nickname_groups
from agent_memory.knowledge.entities.matching.profiles import Described, Name, Profile, WordWeights

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


Stage: TypeAlias = Literal["exact", "fuzzy", "embedding", "rule"]
"""Stage that found a match: normal forms, letters, vectors, or parts and attributes."""
Decision: TypeAlias = Literal["merge", "suggest"]
"""Certain enough to merge, or only a suggestion for a person."""
EXACT: Final = "="
"""First character of keys that two names share when one of them can be taken for the other as it is written."""
_SHARES: Final = {EXACT: 3.0, "@": 3.0, "w": 1.0, "c": 1.0, "i": 0.7, "n": 0.7, "g": 0.5, "m": 0.7, "p": 0.4, "t": 0.2}
"""How much a key of each kind counts, by its first character."""
_PREFIX, _LONG_WORD, _TRIGRAM, _LONGEST_ACRONYM = 4, 5, 3, 6
_PHONE_END: Final = 7
_NOT_A_DIGIT: Final = re.compile(r"\D")
_OFTEN, _MOST_OFTEN = 0.05, 200
"""Share and number of entities with a key, above both of which the key finds none."""
_VISITS: Final = 6_000
_COMPARED: Final = 30
_AS_LIKELY: Final = 1.0
"""Natural logarithm of the odds by which the best must lead the second one, to be merged without a question."""


@dataclass(frozen=True, slots=True)
class Match:
    """A known entity that a description is likely of.

    Attributes:
        id: ID of the known entity.
        stage: Stage that found the match.
        score: Certainty, 0 to 1; comparable between matches of one stage.
        decision: `merge` or `suggest`.
        evidence: Reasons for and against, a sentence each, without values of attributes.
    """

    id: str
    stage: Stage
    score: float
    decision: Decision
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Matching:
    """Enabled stages of matching, and their thresholds.

    Attributes:
        exact_match_enabled: Equal normal forms of names or aliases.
        fuzzy_match_enabled: Names that differ in few letters.
        fuzzy_threshold: Least similarity of these, 0 to 1: 1 - changes / length of the longer name.
        embedding_match_enabled: Near vectors raise candidates; they decide nothing by themselves.
        embedding_threshold: Least cosine of these.
        rule_based_enabled: Parts of names and attributes are weighed against each other.
        merge_from: Least score of a merge, 0 to 1.
        suggest_from: Least score of a suggestion, 0 to 1.
    """

    exact_match_enabled: bool = True
    fuzzy_match_enabled: bool = True
    fuzzy_threshold: float = 0.85
    embedding_match_enabled: bool = True
    embedding_threshold: float = 0.80
    rule_based_enabled: bool = True
    merge_from: float = 0.98
    suggest_from: float = 0.5


def get_keys(profile: Profile) -> frozenset[str]:
    """Return the keys of a description."""
    return frozenset((*_value_keys(profile), *(key for name in profile.names for key in _name_keys(name))))


def _name_keys(name: Name) -> Iterator[str]:
    yield from (EXACT + name.form, EXACT + name.joined, EXACT + name.known)
    yield from (f"c{code}" for code in name.codes)
    words = (*name.words, *name.mailbox)
    for word in words:
        yield f"w{word}"
        if len(word) >= _LONG_WORD:
            yield f"p{word[:_PREFIX]}"
            yield f"n{word[0]}{len(word) - 2}{word[-1]}"
        elif len(word) >= _TRIGRAM and word[1:-1].isdecimal():
            yield f"n{word}"
    joined = f" {name.joined} "
    yield from (f"t{joined[start : start + _TRIGRAM]}" for start in range(len(joined) - _TRIGRAM + 1))
    if 1 < len(name.words) <= _LONGEST_ACRONYM:
        yield f"i{initials(name.words)}"
        yield f"m{name.words[0][0]}{name.words[-1]}"
        yield f"m{name.words[0]}{name.words[-1][0]}"
    elif name.words and len(name.words[0]) <= _LONGEST_ACRONYM:
        yield f"i{name.words[0]}"
    if len(name.mailbox) == 1:
        yield f"m{name.mailbox[0]}"
    if words:
        yield from (f"g{number}" for number in list_nickname_groups((name.mailbox or words)[0]))


def _value_keys(profile: Profile) -> Iterator[str]:
    for value in profile.values.values():
        if value.kind == "phone":
            yield f"@{_NOT_A_DIGIT.sub('', value.text)[-_PHONE_END:]}"
        elif value.kind in {"email", "url", "id"}:
            yield f"@{value.text}"


class NamePostings:
    """Inverted index: numbers of descriptions by key."""

    def __init__(self) -> None:
        self._having: defaultdict[str, set[int]] = defaultdict(set)
        self._size = 0

    def add(self, number: int, keys: Iterable[str]) -> None:
        """Add a description under its keys."""
        self._size += 1
        for key in keys:
            self._having[key].add(number)

    def remove(self, number: int, keys: Iterable[str]) -> None:
        """Remove a description; its keys are those of `add`."""
        self._size -= 1
        for key in keys:
            having = self._having[key]
            having.discard(number)
            if not having:
                del self._having[key]

    def best(self, keys: Iterable[str], limit: int) -> list[int]:
        """Return the numbers that share the rarest keys, best first.

        Equal ones are in the order of numbers.

        Keys of the kind `EXACT` count whatever there are of them.
        """
        most = max(_MOST_OFTEN, _OFTEN * self._size)
        lists = [(len(having), key) for key in keys if (having := self._having.get(key))]
        shared: defaultdict[int, float] = defaultdict(float)
        visits = 0
        for length, key in sorted(lists, key=lambda entry: (entry[1][0] != EXACT, entry)):
            if key[0] != EXACT and (length > most or visits > _VISITS):
                continue
            visits += length
            weight = _SHARES[key[0]] * math.log(1 + self._size / length)
            for number in self._having[key]:
                shared[number] += weight
        return heapq.nsmallest(limit, shared, key=lambda number: (-shared[number], number))


class NearName(Protocol):
    """Search of names that are near in meaning."""

    def __call__(self, name: str, least: float) -> Iterable[tuple[str, float]]:
        """Return IDs with their cosine, at least `least`."""


class Matcher:
    """Finds the known description that a new one is of.

    Give it the descriptions of one group or one agent alone.

    Args:
        known: IDs and descriptions.
        vectors: Search of names by meaning; None disables that stage.
        config: Enabled stages and their thresholds.
    """

    def __init__(
        self,
        known: Iterable[tuple[str, Described]] = (),
        vectors: NearName | None = None,
        config: Matching | None = None,
    ) -> None:
        self._config = config or Matching()
        self._vectors = vectors
        self._ids: list[str] = []
        self._numbers: dict[str, int] = {}
        self._profiles: dict[str, Profile] = {}
        self._weights = WordWeights()
        self._postings = NamePostings()
        for known_id, described in known:
            self.add(known_id, described)

    def __len__(self) -> int:
        return len(self._profiles)

    def add(self, known_id: str, described: Described) -> None:
        """Add a description, or replace that of the same ID."""
        self.remove(known_id)
        profile = Profile(described)
        self._profiles[known_id] = profile
        self._numbers[known_id] = len(self._ids)
        self._ids.append(known_id)
        self._weights.add(profile)
        self._postings.add(self._numbers[known_id], get_keys(profile))

    def remove(self, known_id: str) -> None:
        """Remove a description; an unknown ID changes nothing."""
        profile = self._profiles.pop(known_id, None)
        if profile is not None:
            self._weights.remove(profile)
            self._postings.remove(self._numbers.pop(known_id), get_keys(profile))

    def find(self, described: Described) -> Match | None:
        """Return the most likely match, or None.

        The decision is `suggest` if two known ones are as likely.
        """
        matches = self.likely(described, limit=2)
        return matches[0] if matches else None

    def likely(self, described: Described, *, limit: int = 5) -> tuple[Match, ...]:
        """Return at most `limit` matches, the most likely first."""
        profile = Profile(described)
        near = self._near(described.name)
        by_keys = [self._ids[number] for number in self._postings.best(get_keys(profile), _COMPARED)]
        weighed = []
        for known_id in dict.fromkeys((*by_keys, *near)):
            compared = compare(profile, self._profiles[known_id], self._weights)
            match = self._match(known_id, compared, None if known_id in by_keys else near[known_id])
            if match is not None:
                weighed.append((compared.weight, match))
        weighed.sort(key=lambda entry: (-entry[0], entry[1].id))
        if len(weighed) > 1 and weighed[0][0] - weighed[1][0] < _AS_LIKELY:
            weighed[0] = weighed[0][0], _in_doubt(weighed[0][1])
        return tuple(match for _, match in weighed[:limit])

    def match(self, described: Described, known_id: str) -> Match | None:
        """Compare a description with one known one alone.

        Raises:
            KeyError: The ID is not known.
        """
        return self._match(known_id, compare(Profile(described), self._profiles[known_id], self._weights), None)

    def candidates(self, described: Described) -> list[str]:
        """Return the IDs that a description is compared with, best first."""
        return [self._ids[number] for number in self._postings.best(get_keys(Profile(described)), _COMPARED)]

    def conflict(self, one_id: str, other_id: str) -> bool:
        """Return True if two known descriptions contradict each other.

        Raises:
            KeyError: One of the IDs is not known.
        """
        return compare(self._profiles[one_id], self._profiles[other_id], self._weights).conflicts

    def contradict(self, first: Described, second: Described) -> bool:
        """Return True if two descriptions contradict each other."""
        return compare(Profile(first), Profile(second), self._weights).conflicts

    def _near(self, name: str) -> dict[str, float]:
        if self._vectors is None or not self._config.embedding_match_enabled:
            return {}
        nearest = self._vectors(name, self._config.embedding_threshold)
        return {known_id: cosine for known_id, cosine in nearest if known_id in self._profiles}

    def _match(self, known_id: str, compared: Comparison, cosine: float | None) -> Match | None:
        stage = self._stage(compared, cosine)
        if stage is None or compared.excludes:
            return None
        says, score = compared.says, compared.score
        if cosine is not None:
            says = (f"near in meaning (cosine {cosine:.2f})", *says)
        if not self._config.rule_based_enabled and stage != "exact":
            # without the rules only the measure of the stage remains, which does not suffice to merge
            score = cosine if stage == "embedding" and cosine is not None else compared.likeness
            return Match(known_id, stage, score, "suggest", says)
        if score < self._config.suggest_from:
            return None
        merges = score >= self._config.merge_from and compared.may_merge and stage != "embedding"
        return Match(known_id, stage, score, "merge" if merges else "suggest", says)

    def _stage(self, compared: Comparison, cosine: float | None) -> Stage | None:
        config = self._config
        if compared.same_name and config.exact_match_enabled:
            return "exact"
        if compared.likeness >= config.fuzzy_threshold and config.fuzzy_match_enabled:
            return "fuzzy"
        if cosine is not None:
            return "embedding"
        return "rule" if config.rule_based_enabled else None


def _in_doubt(match: Match) -> Match:
    if match.decision == "suggest":
        return match
    return replace(match, decision="suggest", evidence=(*match.evidence, "another known one is as likely"))
