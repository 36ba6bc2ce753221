"""Reads the notes of a drift world: which claim a title makes, and which fact a sentence of a body carries.

A title is matched by the skeletons of the sentences that such worlds are made of; what fills the gaps is whatever the
file at hand says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final

_S: Final = r"(?P<s>[a-z-]+(?: [a-z-]+){3})"
_VALUE: Final = r"(?P<n>\d+) (?P<unit>[a-z]+)"
_PLAIN: Final = r"(?P<pred>[^;]+?)"
_CLAIMS: Final[tuple[tuple[str, str], ...]] = (
    ("bridge", rf"{_S} mirrors every setting and rule of the (?P<other>[a-z -]+)"),
    ("setting.pinned", rf"Operators pinned the {_S} to {_VALUE} for its (?P<slot>[a-z -]+), and .*"),
    ("setting.agreed", rf"The agreed setting for the {_S} is {_VALUE}"),
    ("setting.every", rf"Every deployment of the {_S} runs with an? (?P<slot>[a-z -]+) of {_VALUE}, .*"),
    ("setting.converted", rf"{_S} (?:is set to an? (?P<slot>[a-z -]+) of|keeps its (?P<slot2>[a-z -]+) at) {_VALUE}"),
    ("setting.bare", rf"{_S} is configured with {_VALUE}"),
    ("setting.again", rf"{_S} keeps an? (?P<slot>[a-z -]+) of {_VALUE}"),
    ("setting", rf"{_S} uses an? (?P<slot>[a-z -]+) of {_VALUE}"),
    ("rule.fine", rf"Doing (?P<do>.+) inside the {_S} is fine .*"),
    ("rule.forbidden", rf"It is forbidden for the {_S} to (?P<do>.+)"),
    ("rule.convenient", rf"{_S} is allowed to (?P<do>.+) whenever .*"),
    ("rule.stale", rf"{_S} is permitted to (?P<do>.+)"),
    ("rule.may", rf"{_S} may freely (?P<do>.+)"),
    ("rule.again", rf"{_S} should never (?P<do>.+)"),
    ("rule", rf"{_S} must never (?P<do>.+)"),
    ("issue.plain", rf"There is an open issue where the {_S} {_PLAIN}"),
    ("issue.solved", rf"The {_S} has stopped showing that it {_PLAIN}; .*"),
    ("issue.stale", rf"{_S} no longer {_PLAIN} \(closed\)"),
    ("issue.over", rf"{_S} no longer {_PLAIN}"),
    ("issue.again", rf"Confirmed: {_S} (?P<both>[^;]+)"),
    ("fault.stale", rf"{_S}: {_PLAIN} — never observed, .*"),
    ("fault.unseen", rf"Nobody has ever seen the {_S} {_PLAIN}; .*"),
    ("fault.clean", rf"In every environment tried so far the {_S} runs clean: {_PLAIN} has not happened once"),
    ("fault.plain", rf"In production, {_S} {_PLAIN} without warning"),
    ("fault.never", rf"{_S} never {_PLAIN}, whatever happens"),
    ("cause.elsewhere", rf"The explanation for the {_S} {_PLAIN} was traced elsewhere; (?P<cause>.+) plays no part"),
    ("cause.reason", rf"The reason the {_S} {_PLAIN} is that (?P<cause>.+)"),
    ("cause.not", rf"It is not true that {_S} {_PLAIN} because (?P<cause>.+)"),
    ("cause.other", rf"{_S} {_PLAIN} for reasons that have nothing to do with (?P<cause>.+)"),
    ("cause.stale", rf"{_S} {_PLAIN}, and (?P<cause>.+) is not why"),
    ("cause", rf"{_S} {_PLAIN} because (?P<cause>.+)"),
    ("cause.again", rf"{_S} {_PLAIN} since (?P<cause>.+)"),
    ("fault.again", rf"{_S} {_PLAIN} (?P<when>whenever .+)"),
    ("both", rf"{_S} (?P<both>[^;]+)"),
)
_REST: Final[tuple[tuple[str, str], ...]] = (
    ("no.setting", rf"it is configured with {_VALUE}"),
    ("no.rule", r"it may freely (?P<do>.+)"),
    ("no.issue", rf"it no longer {_PLAIN}"),
    ("no.fault", rf"it never {_PLAIN}, whatever happens"),
    ("no.effect", rf"it {_PLAIN} for a reason other than (?P<cause>.+)"),
)
_WRAPPED: Final[tuple[tuple[str, str], ...]] = (
    ("denied", r"It is not the case that the (?P<inner>.+)"),
    ("mistaken", r"Contrary to the runbook, it is wrong that the (?P<inner>.+); .*"),
    ("both", r"(?P<inner>[^;]+); separately, operators report that (?P<rest>.+)"),
    ("until", r"Until the [\d.]+ rollout, (?P<inner>.+); the rollout changed that, .*"),
)
_TAIL: Final = re.compile(r"^(.*?)(?: — (?!never observed)|, (?=(?:which|so|and (?:it|no))\b)).*$")
_CARRIED: Final[tuple[tuple[str, str], ...]] = (
    ("reason", r"Chosen deliberately: (?P<reason>.+), so anything .*"),
    ("ban", r"Not negotiable: (?P<reason>.+)"),
    ("open", r"Reproduces .*, and only (?P<when>.+), so .*"),
    ("traced", r"Worked this out .*?: (?P<cause>.+)"),
    ("found", r"Found the hard way"),
    ("stale", r"Recorded before the .* was re-tuned.*"),
    ("same", r"Same setting, .*"),
    ("converted", r"Converted from .*"),
    ("unrelated", r"Observed on the same component, unrelated .*"),
    ("history", r"History, .*"),
    ("template", r"The two are provisioned .*"),
    ("restated", r"Restated .*"),
    ("corrected", r"Corrected after .*"),
    ("two", r"Two observations .*"),
    ("other", r"(?:Recorded while|Written up|Checked against|Surveyed across|Noted while|Captured from) .*"),
)
_SENTENCE: Final = re.compile(r"(?<=[.?!])\s+")


@dataclass(frozen=True)
class Claim:
    """What a title says.

    Attributes:
        form: Its name in the frames, `setting` or `rule.may`, say.
        parts: What fills the gaps: `s` (the subject), `slot`, `n`, `unit`, `pred`, `when`, `do`, `cause`, `other`.
        inner: With `denied`, `mistaken`, `both` and `until`, the claim that it is about.
        rest: With `both`, the second half.
    """

    form: str
    parts: dict[str, str] = field(default_factory=dict)
    inner: Claim | None = None
    rest: Claim | None = None

    @property
    def subject(self) -> str:
        """Whom it is about."""
        return self.parts["s"] if self.inner is None else self.inner.subject


class Reader:
    """Reads the titles of one world.

    Args:
        conditions: What stands in its bodies as a precondition: a title has it without a mark of its own.
    """

    def __init__(self, conditions: set[str]) -> None:
        self._conditions = sorted(conditions, key=len, reverse=True)

    def claim(self, title: str) -> Claim | None:
        """Return what a title says; None if it is of no known form."""
        text = title.strip()
        if found := _first(_WRAPPED, text):
            form, parts = found
            inner = self.claim(parts["inner"])
            rest = _first(_REST, parts["rest"]) if "rest" in parts else None
            if inner is None or ("rest" in parts and rest is None):
                return None
            second = Claim(rest[0], {**rest[1], "s": inner.subject}) if rest else None
            return Claim(form, inner=inner, rest=second)
        found = _first(_CLAIMS, _without_tail(text).rstrip("."))
        if found is None:
            return None
        form, parts = found
        if "slot2" in parts:
            parts["slot"] = parts.pop("slot2")
        return self._split(Claim(form, parts))

    def _split(self, claim: Claim) -> Claim:
        """Part what it does from when it does so; a fault has `when`, an issue its condition."""
        text = claim.parts.get("both")
        if text is None:
            return claim
        parts = {name: value for name, value in claim.parts.items() if name != "both"}
        for condition in self._conditions:
            if text.endswith(" " + condition):
                form = "issue" if claim.form == "both" else claim.form
                return Claim(form, {**parts, "pred": text.removesuffix(" " + condition), "when": condition})
        pred, mark, when = text.partition(" when ")
        if mark:
            return Claim("fault", {**parts, "pred": pred, "when": "when " + when})
        return Claim("fault.plain", {**parts, "pred": text})


def sentences(body: str) -> list[str]:
    """Return the sentences of a body."""
    return [each for each in _SENTENCE.split(body.strip()) if each]


def carried(sentence: str) -> tuple[str, dict[str, str]] | None:
    """Return the kind of a sentence that carries something, and what; None for one that is there for its length."""
    return _first(_CARRIED, sentence.rstrip("."))


def conditions(bodies: list[str]) -> set[str]:
    """Return the preconditions that these bodies name."""
    found = (carried(each) for body in bodies for each in sentences(body))
    return {parts["when"] for hit in found if hit and (parts := hit[1]) and "when" in parts}


def plain(claim: Claim) -> Claim:
    """Return a claim as it stands inside another: without what it has beyond its first form."""
    return replace(claim, form=claim.form.partition(".")[0])


def _without_tail(text: str) -> str:
    """Leave out the remark that a title may end with."""
    if " plays no part" in text or " is not why" in text or re.search(r"never observed|, whatever happens", text):
        return text
    if re.match(r"(Operators|Every deployment|The explanation)", text):
        return text
    match = _TAIL.match(text)
    return match[1] if match else text


def _first(table: tuple[tuple[str, str], ...], text: str) -> tuple[str, dict[str, str]] | None:
    for form, pattern in table:
        if match := re.fullmatch(pattern, text):
            return form, {name: value for name, value in match.groupdict().items() if value is not None}
    return None
