"""One sentence against the rules: which holds, how sure, what forbids it. Sees no neighbouring sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from agent_memory.capture.cues import is_stated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.capture.rules import Rule, RuleSet, Veto
    from agent_memory.language.message_sentences import MessageSentence

    _Readings: TypeAlias = Sequence[tuple[RuleSet, str]]
    """Languages that apply, each with the sentence as it reads it."""

_AGREEING_RULE_BONUS: Final = 0.04
_MAX_BONUS: Final = 0.08
CUSTOM: Final = "custom"
"""Group of the user's own rules. What they find in the user's words is not doubted; what others say is."""

_ASSISTANT_PENALTY: Final = 0.2
"""A model calls much a cause or a lesson; without a word of proof nearby such a sentence stays below the threshold."""

_CAUTIOUS: Final = frozenset(("bugfix", "discovery", "insight"))
_QUESTION: Final = "question"
_CERTAINTY: Final = "certain"
_NEVER_ASKED: Final = frozenset(("decision", "identity"))
_SPOKEN_AS_IS: Final = frozenset((CUSTOM, _QUESTION))
"""Groups of rules that may also hold in a question."""


@dataclass(slots=True)
class Verdict:
    """What became of one sentence."""

    sentence: MessageSentence
    rule: Rule | None = None
    category: str = "note"
    confidence: float = 0.0
    veto: Veto | None = None
    doubtful: bool = False
    """A penalty applies: the sentence is no fit company for a captured neighbour."""

    groups: frozenset[str] = field(default_factory=frozenset)
    cue: str = ""
    """Class of the user's explicit cue, or empty."""

    @property
    def is_hit(self) -> bool:
        """Whether a rule holds and nothing forbids it (the threshold is the extractor's)."""
        return self.rule is not None and self.veto is None


def judge(
    sentence: MessageSentence, rule_sets: Sequence[RuleSet], custom: Sequence[Rule], speaker: str, paragraph: str
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
        if speaker in rule.sources and _matches(rule, text, speaker)
    ]
    verdict = Verdict(sentence, groups=frozenset(rule.group for rule in matched if rule.group))
    cue = next((rule.cue for rule in matched if rule.cue), "") if speaker == "user" else ""
    verdict.veto = _veto(readings, verdict.groups, is_cue=bool(cue))
    if matched:
        _score(verdict, matched, readings, speaker, paragraph)
        verdict.cue = CUSTOM if CUSTOM in verdict.groups else "" if verdict.doubtful else cue
    else:
        verdict.doubtful = any(
            shift.weight < 0 and not shift.categories and shift.pattern.search(text)
            for rule_set, text in readings
            for shift in rule_set.shifts
        )
    return verdict


def _matches(rule: Rule, text: str, speaker: str) -> bool:
    """Return True if a rule matches; a user has to state it."""
    if speaker == "user" and rule.group not in _SPOKEN_AS_IS:
        return is_stated(rule.pattern, text, may_be_asked=rule.cue not in _NEVER_ASKED)
    return rule.pattern.search(text) is not None


def _veto(readings: _Readings, groups: frozenset[str], *, is_cue: bool) -> Veto | None:
    """Return the widest veto that matches, or None.

    A cue is not in a question, see `is_stated`.
    """
    width = {"sentence": 0, "paragraph": 1, "before": 2, "message": 3}
    holding = [
        veto
        for rule_set, text in readings
        for veto in rule_set.vetoes
        if not veto.spares & groups and not (is_cue and veto.name == _QUESTION) and veto.pattern.search(text)
    ]
    return max(holding, key=lambda veto: width[veto.scope], default=None)


def _score(verdict: Verdict, matched: list[Rule], readings: _Readings, speaker: str, paragraph: str) -> None:
    best = max(matched, key=lambda rule: rule.confidence)
    verdict.rule = best
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
    verdict.confidence = round(min(0.99, max(0.0, confidence)), 2)
