"""One sentence against the rules: which holds, how sure, what forbids it. Sees no neighbouring sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.capture.rules import Rule, RuleSet, Veto
    from agent_memory.capture.sentences import Sentence

    _Readings: TypeAlias = Sequence[tuple[RuleSet, str]]
    """Languages that apply, each with the sentence as it reads it."""

_AGREEING_RULE_BONUS: Final = 0.04
_MAX_BONUS: Final = 0.08
CUSTOM: Final = "custom"
"""Group of the user's own rules. What they find in the user's words is not doubted; what others say is."""

WEAK_CEILING: Final = 0.45
"""Below the default threshold; see `weak_for` in capture/rules.py."""

_ASSISTANT_PENALTY: Final = 0.2
"""A model calls much a cause or a lesson; without a word of proof nearby such a sentence stays below the threshold."""

_CAUTIOUS: Final = frozenset(("bugfix", "discovery", "insight"))
_CERTAINTY: Final = "certain"
_ASKING: Final = frozenset(("one_off", "request"))


@dataclass(slots=True)
class Verdict:
    """What became of one sentence."""

    sentence: Sentence
    rule: Rule | None = None
    category: str = "note"
    confidence: float = 0.0
    veto: Veto | None = None
    doubtful: bool = False
    """A penalty applies: the sentence is no fit company for a captured neighbour."""

    asks: bool = False
    """A question, or an order for this moment: then the statements around it are its circumstances."""

    weak: bool = False
    """Its rule is wrong more often than right for this speaker."""

    groups: frozenset[str] = field(default_factory=frozenset)

    @property
    def is_hit(self) -> bool:
        """Whether a rule holds and nothing forbids it (the threshold is the extractor's)."""
        return self.rule is not None and self.veto is None


def judge(
    sentence: Sentence, rule_sets: Sequence[RuleSet], custom: Sequence[Rule], speaker: str, paragraph: str
) -> Verdict:
    """Return the verdict on `sentence`.

    Args:
        sentence: To be judged by its masked text.
        rule_sets: Languages that apply.
        custom: The user's own rules.
        speaker: user, assistant or teammate.
        paragraph: Masked text of the whole paragraph, searched for words of proof.
    """
    readings = [(rule_set, rule_set.read(sentence.masked)) for rule_set in rule_sets]
    matched = [
        rule
        for rules, text in (*((rule_set.rules, text) for rule_set, text in readings), (custom, sentence.masked))
        for rule in rules
        if speaker in rule.sources and rule.pattern.search(text)
    ]
    verdict = Verdict(sentence, groups=frozenset(rule.group for rule in matched if rule.group))
    verdict.veto = _veto(readings, verdict.groups)
    verdict.asks = _asks(verdict, readings)
    if matched:
        _score(verdict, matched, readings, speaker, paragraph)
    else:
        verdict.doubtful = any(
            shift.weight < 0 and not shift.categories and shift.pattern.search(text)
            for rule_set, text in readings
            for shift in rule_set.shifts
        )
    return verdict


def _asks(verdict: Verdict, readings: _Readings) -> bool:
    if verdict.groups & {"explicit", "standing", "question", "task"}:
        return False
    return (
        (verdict.veto is not None and verdict.veto.name == "question")
        or any(rs.asks is not None and rs.asks.search(text) for rs, text in readings)
        or any(shift.name in _ASKING and shift.pattern.search(text) for rs, text in readings for shift in rs.shifts)
    )


def _veto(readings: _Readings, groups: frozenset[str]) -> Veto | None:
    """Return the veto with the widest scope that holds."""
    width = {"sentence": 0, "paragraph": 1, "before": 2, "message": 3}
    holding = [
        veto
        for rule_set, text in readings
        for veto in rule_set.vetoes
        if not veto.spares & groups and veto.pattern.search(text)
    ]
    return max(holding, key=lambda veto: width[veto.scope], default=None)


def _score(verdict: Verdict, matched: list[Rule], readings: _Readings, speaker: str, paragraph: str) -> None:
    best = max(matched, key=lambda rule: (speaker not in rule.weak_for, rule.confidence))
    verdict.rule = best
    verdict.weak = speaker in best.weak_for
    if named := [best] if best.category != "auto" else [rule for rule in matched if rule.category != "auto"]:
        verdict.category = max(named, key=lambda rule: rule.confidence).category
    confidence = best.confidence + min(_MAX_BONUS, _AGREEING_RULE_BONUS * (len(matched) - 1))
    if speaker == "assistant" and verdict.category in _CAUTIOUS:
        confidence -= _ASSISTANT_PENALTY
    spared = verdict.groups if speaker == "user" else verdict.groups - {CUSTOM}
    applied: set[str] = set()
    for shift, text in ((shift, text) for rule_set, text in readings for shift in rule_set.shifts):
        if shift.categories and verdict.category not in shift.categories:
            continue
        if shift.weight > 0:
            searched = paragraph if shift.name == _CERTAINTY else text
            if shift.pattern.search(searched):
                confidence += shift.weight
        elif shift.name not in applied and not (shift.spares | {CUSTOM}) & spared and shift.pattern.search(text):
            applied.add(shift.name)  # two languages may share the word
            confidence += shift.weight
            verdict.doubtful = True
    ceiling = WEAK_CEILING if verdict.weak else 0.99
    verdict.confidence = round(min(ceiling, max(0.0, confidence)), 2)
