"""Grades the replies of a system to a drift world, by the published description of KnowledgeDrift v2.

1,000 points: eight families, 100 times the share of their tasks that were passed, 0 where the system has no such
ability; `signal`, 100 times the mean share of what was shown that belongs to the answer; `tokens`, 100 at up to 200
tokens a question and 0 at 3,000, logarithmic between.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.drift.system import RecallAnswer, ShownNote, SystemAbilities, SystemReplies

FAMILIES: Final = (
    "retrieval", "abstention", "currency", "contradiction", "drift", "deletion", "rationale", "temporal",
)  # fmt: skip
COLUMNS: Final = (*FAMILIES, "signal", "tokens")
FIRST: Final = 5
"""A note counts as found among so many."""
_SESSION: Final = 20
"""Questions over which the text that stands in every prompt is spread."""
_CHEAP, _DEAR = 200, 3000
_CLEARED: Final = frozenset({"entailment", "neutral"})


@dataclass(frozen=True)
class DriftGrade:
    """One system's points on one world.

    Attributes:
        columns: Families, signal and tokens, each of 100.
        false_pairs_per_100: Pairs in the queue that the world did not plant, for 100 notes.
        details: Shares that say why: by phrasing, by shape, hedging, tokens a question.
    """

    columns: dict[str, float]
    false_pairs_per_100: float
    details: dict[str, float]

    @property
    def score(self) -> float:
        """Points of 1,000."""
        return sum(self.columns.values())


def tokens(text: str) -> int:
    """Return the number of tokens of a text, estimated by its length."""
    return math.ceil(len(text) / 4)


def token_score(billed: float) -> float:
    """Return the points for so many tokens a question."""
    if billed <= _CHEAP:
        return 100.0
    return min(100.0, max(0.0, 100 * math.log(_DEAR / billed) / math.log(_DEAR / _CHEAP)))


def grade(world: dict[str, Any], replies: SystemReplies, can: SystemAbilities) -> DriftGrade:
    """Grade the replies to a world."""
    return _DriftGrading(world, replies, can).result()


class _DriftGrading:
    def __init__(self, world: dict[str, Any], replies: SystemReplies, can: SystemAbilities) -> None:
        self._world, self._replies, self._can = world, replies, can
        self._passed: defaultdict[str, list[bool]] = defaultdict(list)
        self._shares: defaultdict[str, list[float]] = defaultdict(list)
        self._focus: list[float] = []
        self._billed: list[int] = []
        self._writes = {
            step["record"]["key"]: replies.written[step["id"]]
            for step in world["ops"]
            if step["op"] == "inscribe" and "id" in step and step["id"] in replies.written
        }

    def result(self) -> DriftGrade:
        for probe in self._world["probes"]:
            getattr(self, f"_{probe['expect']}")(probe)
        columns = {name: 100 * _mean(self._passed[name]) for name in FAMILIES}
        if not self._can.suspects:
            columns["contradiction"] = columns["drift"] = 0.0
        if not self._can.temporal:
            columns["temporal"] = 0.0
        per_question = _mean(self._billed) + self._replies.standing_tokens / _SESSION
        columns |= {"signal": 100 * _mean(self._focus), "tokens": token_score(per_question)}
        details = {name: _mean(values) for name, values in sorted(self._shares.items())}
        details["tokens_per_question"] = per_question
        return DriftGrade(columns, self._false_pairs(), details)

    # -- questions ----------------------------------------------------------------------------------------------------

    def _gold(self, probe: dict[str, Any]) -> None:
        answer = self._answer(probe)
        rank = _readable_rank(answer, probe["gold"], probe.get("answer", ""))
        stale = _rank(answer, probe["stale"]) if probe.get("stale") else None
        stale_above = stale is not None and (rank is None or stale < rank)
        found = rank is not None and rank <= FIRST
        self._passed["retrieval"].append(found and not stale_above)
        self._shares[f"found {probe['phrasing']}"].append(found)
        if probe.get("stale"):
            self._shares["stale above"].append(stale_above)
        shown = [hit for hit in answer.hits if hit.key == probe["gold"]]
        readable = any(_holds(hit, probe.get("answer", "")) for hit in shown)
        self._attend(answer, shown[:1], counts=readable)

    def _bound(self, probe: dict[str, Any]) -> None:
        answer = self._answer(probe)
        wanted = dict(zip(probe["gold"], probe["answers"], strict=True))
        ranks = [_readable_rank(answer, key, text) for key, text in wanted.items()]
        found = any(rank is not None and rank <= FIRST for rank in ranks)
        self._passed["retrieval"].append(found)
        self._shares["found by file"].append(found)
        self._attend(answer, [hit for hit in answer.hits if hit.key in wanted], counts=found)

    def _attend(self, answer: RecallAnswer, gold: list[ShownNote], *, counts: bool) -> None:
        """Note what had to be read, and how much of it was the answer."""
        shown = sum(tokens(hit.text) for hit in answer.hits)
        focus = sum(tokens(hit.text) for hit in gold) / max(1, shown)
        self._billed.append(shown)
        self._focus.append(focus if counts and not answer.declined else 0.0)
        if gold:
            self._shares["declined though shown"].append(answer.declined)

    def _control(self, probe: dict[str, Any]) -> None:
        answer = self._answer(probe)
        passed = not answer.hits or answer.declined
        self._passed["abstention"].append(passed)
        self._shares["abstained, subject known" if probe.get("natural") else "abstained, subject unknown"].append(
            passed
        )

    def _current(self, probe: dict[str, Any]) -> None:
        answer = self._answer(probe)
        rank = _readable_rank(answer, probe["head"], probe.get("answer", ""))
        polluted = any(_rank(answer, key) is not None for key in probe["retired"])
        self._passed["currency"].append(rank is not None and rank <= FIRST and not polluted)
        self._shares["retired shown"].append(polluted)

    def _lineage(self, probe: dict[str, Any]) -> None:
        keys = self._replies.lineage.get(probe["id"])
        if keys is not None:  # what keeps no history is not asked for it
            self._passed["currency"].append(set(probe["retired"]) <= set(keys))

    def _linked(self, probe: dict[str, Any]) -> None:
        answer = self._answer(probe)
        rank = _rank(answer, probe["gold"])
        itself = rank is not None and rank <= FIRST
        direct = itself and _readable_rank(answer, probe["gold"], probe.get("answer", "")) is not None
        beside = any(probe["gold"] in hit.neighbors for hit in _live(answer)[:FIRST])
        self._passed["rationale"].append(direct or beside)

    def _windowed(self, probe: dict[str, Any]) -> None:
        answer = self._answer(probe)
        rank = _readable_rank(answer, probe["gold"], probe.get("answer", ""))
        after, before = probe["window"]["after"], probe["window"]["before"]
        leaked = any(hit.created_at is not None and not after <= hit.created_at < before for hit in answer.hits)
        self._passed["temporal"].append(rank is not None and rank <= FIRST and not leaked)

    def _absent(self, probe: dict[str, Any]) -> None:
        self._passed["deletion"].append(_rank(self._answer(probe), probe["victim"]) is None)

    def _resurrect(self, probe: dict[str, Any]) -> None:
        if probe["released"] and self._can.trace:
            self._passed["deletion"].append(self._replies.written[probe["id"]].released)

    def _answer(self, probe: dict[str, Any]) -> RecallAnswer:
        return self._replies.recalled[probe["id"]]

    # -- pairs --------------------------------------------------------------------------------------------------------

    def _case(self, probe: dict[str, Any]) -> None:
        queued, hint, absorbed = self._raised(probe["witness"], probe["gold"])
        if probe["positive"]:
            passed = queued and not absorbed and hint != "entailment"
        else:
            passed = not queued or hint in _CLEARED or (absorbed and hint != "contradiction")
        self._passed["contradiction"].append(passed)
        kind = "noticed" if probe["positive"] else "left alone"
        self._shares[f"{kind} {probe['shape']}"].append(passed)

    def _drifted(self, probe: dict[str, Any]) -> None:
        queued, hint, _ = self._raised(probe["stale"], probe["gold"])
        self._passed["drift"].append(queued and hint != "entailment")

    def _raised(self, one: str, other: str) -> tuple[bool, str | None, bool]:
        """Return if a pair was queued, its strongest hint, and if it was absorbed."""
        hints = [pair.hint for pair in self._replies.queue if {pair.a, pair.b} == {one, other}]
        queued = bool(hints)
        hint = "contradiction" if "contradiction" in hints else next((each for each in hints if each), None)
        written = self._writes.get(one)
        absorbed = written is not None and written.matched == other
        return queued or absorbed, hint, absorbed

    def _false_pairs(self) -> float:
        """Count the pairs that are no planted contradiction and no stale note beside its current one."""
        planted = set()
        for probe in self._world["probes"]:
            if probe["expect"] == "case" and probe["positive"]:
                planted |= {frozenset((key, probe["gold"])) for key in probe["planted"]}
            elif probe["expect"] == "drifted":
                planted.add(frozenset((probe["stale"], probe["gold"])))
        raised = {frozenset((pair.a, pair.b)) for pair in self._replies.queue if pair.hint not in _CLEARED}
        written = {step["record"]["key"] for step in self._world["ops"] if step["op"] == "inscribe"}
        written |= {step["new"]["key"] for step in self._world["ops"] if step["op"] == "supersede"}
        again = {key for key in written if key.startswith("z-")}  # after the queue was asked for
        return 100 * len(raised - planted) / max(1, len(written - again))


def _live(answer: RecallAnswer) -> list[ShownNote]:
    return [hit for hit in answer.hits if not hit.tombstone]


def _rank(answer: RecallAnswer, key: str) -> int | None:
    return next((rank for rank, hit in enumerate(_live(answer), 1) if hit.key == key), None)


def _readable_rank(answer: RecallAnswer, key: str, words: str) -> int | None:
    """Return the rank of a note if the words of the answer can be read in what was shown of it."""
    readable = any(hit.key == key and _holds(hit, words) for hit in answer.hits)
    return _rank(answer, key) if readable else None


def _holds(hit: ShownNote, words: str) -> bool:
    return words.lower() in hit.text.lower()


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
