"""Search of the known description that a new one is of, in four stages."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from agent_memory.knowledge.entities.matching.comparing import compare
from agent_memory.knowledge.entities.matching.overlap import Weights
from agent_memory.knowledge.entities.matching.postings import NamePostings, keys_of
from agent_memory.knowledge.entities.matching.profiles import Profile
from agent_memory.knowledge.entities.record import Match, Matching

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.knowledge.entities.matching.comparing import Comparison
    from agent_memory.knowledge.entities.record import Described, Stage

_COMPARED: Final = 30
_AS_LIKELY: Final = 1.0
"""Natural logarithm of odds by which the best has to be ahead of the second one, to be taken for it unasked."""


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
        self._weights = Weights()
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
        self._postings.add(self._numbers[known_id], keys_of(profile))

    def remove(self, known_id: str) -> None:
        """Remove a description; an unknown ID changes nothing."""
        profile = self._profiles.pop(known_id, None)
        if profile is not None:
            self._weights.remove(profile)
            self._postings.remove(self._numbers.pop(known_id), keys_of(profile))

    def find(self, described: Described) -> Match | None:
        """Return the most likely match, or None.

        The decision is `suggest` if two known ones are as likely.
        """
        found = self.likely(described, limit=2)
        return found[0] if found else None

    def likely(self, described: Described, *, limit: int = 5) -> tuple[Match, ...]:
        """Return at most `limit` matches, the most likely first."""
        profile = Profile(described)
        near = self._near(described.name)
        by_keys = [self._ids[number] for number in self._postings.best(keys_of(profile), _COMPARED)]
        weighed = []
        for known_id in dict.fromkeys((*by_keys, *near)):
            compared = compare(profile, self._profiles[known_id], self._weights)
            match = self._match(known_id, compared, None if known_id in by_keys else near[known_id])
            if match is not None:
                weighed.append((compared.weight, match))
        weighed.sort(key=lambda each: (-each[0], each[1].id))
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
        return [self._ids[number] for number in self._postings.best(keys_of(Profile(described)), _COMPARED)]

    def conflict(self, one_id: str, other_id: str) -> bool:
        """Return True if two known descriptions contradict each other.

        Raises:
            KeyError: One of the IDs is not known.
        """
        return compare(self._profiles[one_id], self._profiles[other_id], self._weights).conflicts

    def contradict(self, one: Described, other: Described) -> bool:
        """Return True if two descriptions contradict each other."""
        return compare(Profile(one), Profile(other), self._weights).conflicts

    def _near(self, name: str) -> dict[str, float]:
        if self._vectors is None or not self._config.embedding_match_enabled:
            return {}
        found = self._vectors(name, self._config.embedding_threshold)
        return {known_id: cosine for known_id, cosine in found if known_id in self._profiles}

    def _match(self, known_id: str, compared: Comparison, cosine: float | None) -> Match | None:
        stage = self._stage(compared, cosine)
        if stage is None or compared.excludes:
            return None
        says, score = compared.says, compared.score
        if cosine is not None:
            says = (f"near in meaning (cosine {cosine:.2f})", *says)
        if not self._config.rule_based_enabled and stage != "exact":
            # without the rules the stage's own measure is all there is, and it is not enough to merge
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
