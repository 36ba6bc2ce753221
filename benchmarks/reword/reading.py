"""Reads the notes of a drift world: which claim a title makes, and which fact a sentence of a body carries.

A title is matched by the skeletons of the sentences that such worlds are made of; what fills the gaps is whatever the
file at hand says.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

_S: Final = r"(?P<s>[a-z-]+(?: [a-z-]+){3})"
_VALUE: Final = r"(?P<n>\d+) (?P<unit>[a-z]+)"
_PLAIN: Final = r"(?P<pred>[^;]+?)"


def _load_readings() -> dict[str, tuple[tuple[str, str], ...]]:
    """Return form and pattern of each reading, by section, in the order in which they are tried."""
    sections = tomllib.loads(Path(__file__).with_name("readings.toml").read_text("utf-8"))
    gaps = {"{S}": _S, "{VALUE}": _VALUE, "{PLAIN}": _PLAIN}
    return {
        name: tuple((form, re.sub(r"\{[A-Z]+\}", lambda gap: gaps[gap[0]], text)) for form, text in section.items())
        for name, section in sections.items()
    }


_READINGS: Final = _load_readings()
_TAIL: Final = re.compile(r"^(.*?)(?: — (?!never observed)|, (?=(?:which|so|and (?:it|no))\b)).*$")
_SENTENCE: Final = re.compile(r"(?<=[.?!])\s+")


@dataclass(frozen=True)
class TitleClaim:
    """Claim of a title.

    Attributes:
        form: Its name in the frames, `setting` or `rule.may`, say.
        parts: What fills the gaps: `s` (the subject), `slot`, `n`, `unit`, `pred`, `when`, `do`, `cause`, `other`.
        inner: With `denied`, `mistaken`, `both` and `until`, the claim that it is about.
        rest: With `both`, the second half.
    """

    form: str
    parts: dict[str, str] = field(default_factory=dict)
    inner: TitleClaim | None = None
    rest: TitleClaim | None = None

    @property
    def subject(self) -> str:
        """Subject of the claim."""
        return self.parts["s"] if self.inner is None else self.inner.subject


class ClaimReader:
    """Reads the titles of one world.

    Args:
        conditions: What stands in its bodies as a precondition: a title has it without a mark of its own.
    """

    def __init__(self, conditions: set[str]) -> None:
        self._conditions = sorted(conditions, key=len, reverse=True)

    def claim(self, title: str) -> TitleClaim | None:
        """Return the claim of a title, or None if its form is unknown."""
        text = title.strip()
        if found := _first(_READINGS["wrapped"], text):
            form, parts = found
            inner = self.claim(parts["inner"])
            rest = _first(_READINGS["rest"], parts["rest"]) if "rest" in parts else None
            if inner is None or ("rest" in parts and rest is None):
                return None
            second = TitleClaim(rest[0], {**rest[1], "s": inner.subject}) if rest else None
            return TitleClaim(form, inner=inner, rest=second)
        found = _first(_READINGS["claims"], _without_tail(text).rstrip("."))
        if found is None:
            return None
        form, parts = found
        if "slot2" in parts:
            parts["slot"] = parts.pop("slot2")
        return self._split(TitleClaim(form, parts))

    def _split(self, claim: TitleClaim) -> TitleClaim:
        """Part what it does from when it does so; a fault has `when`, an issue its condition."""
        text = claim.parts.get("both")
        if text is None:
            return claim
        parts = {name: value for name, value in claim.parts.items() if name != "both"}
        for condition in self._conditions:
            if text.endswith(" " + condition):
                form = "issue" if claim.form == "both" else claim.form
                return TitleClaim(form, {**parts, "pred": text.removesuffix(" " + condition), "when": condition})
        pred, mark, when = text.partition(" when ")
        if mark:
            return TitleClaim("fault", {**parts, "pred": pred, "when": "when " + when})
        return TitleClaim("fault.plain", {**parts, "pred": text})


def sentences(body: str) -> list[str]:
    """Return the sentences of a body."""
    return [each for each in _SENTENCE.split(body.strip()) if each]


def carried(sentence: str) -> tuple[str, dict[str, str]] | None:
    """Return the kind of a sentence that carries something, and what; None for one that is there for its length."""
    return _first(_READINGS["carried"], sentence.rstrip("."))


def conditions(bodies: list[str]) -> set[str]:
    """Return the preconditions that these bodies name."""
    found = (carried(each) for body in bodies for each in sentences(body))
    return {parts["when"] for hit in found if hit and (parts := hit[1]) and "when" in parts}


def plain(claim: TitleClaim) -> TitleClaim:
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
