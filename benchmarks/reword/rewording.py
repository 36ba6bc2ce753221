"""Writes the claims of a drift world in the frames of a rewording, and numbers, units and verbs as these ask for."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.reword.reading import TitleClaim, carried, sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER: Final = Path(__file__).parent / "rewordings"
_ONES: Final = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS: Final = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()  # noqa: SIM905
_SHORT: Final = {
    "milliseconds": "ms", "seconds": "s", "minutes": "min", "hours": "h", "days": "d", "percent": "%",
    "kilobytes": "kB", "megabytes": "MB",
}  # fmt: skip
_LARGER: Final = {"milliseconds": (1000, "s", "ms"), "seconds": (60, "min", "s"), "minutes": (60, "h", "min"),
                  "hours": (24, "d", "h"), "kilobytes": (1024, "MB", "kB")}  # fmt: skip
_DOUBLING: Final = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]")
_STRESSED_LAST: Final = frozenset(
    {"emit", "forget", "outrun", "overrun", "defer", "refer", "admit", "permit", "prefer"}
)


class RewordingFrames:
    """One rewording.

    Args:
        name: Of its file in `data/rewordings`, without the ending.

    Raises:
        ValueError: There is no such file.
    """

    def __init__(self, name: str) -> None:
        path = FOLDER / f"{name}.toml"
        if not path.is_file():
            raise ValueError(f"no frames {name!r}; there are {', '.join(names())}")
        data: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
        self.name = name
        self.numbers: str = data["numbers"]
        self.frames: dict[str, list[str]] = data["frames"]
        self.clauses: dict[str, list[str]] = data["clauses"]
        self.body: dict[str, list[str]] = data["body"]

    def note(self, claim: TitleClaim, title: str, body: str, key: str) -> tuple[str, str]:
        """Return title and body in other words; the same `key` has the same frame."""
        head, _, lead = self._filled(claim, key).partition(" || ")
        rest = self._body(claim, body)
        tail = _pick(self.body["tails"], "tail" + key) if len(title) > 80 and _number("tail?" + key) % 2 else ""
        between = "\n" if self.numbers == "split" else " "
        return self._capital(head), between.join(part for part in (self._capital(lead), rest, tail) if part)

    def _filled(self, claim: TitleClaim, key: str) -> str:
        if claim.inner is None:
            return _pick(self.frames[claim.form], claim.form + key).format_map(self._gaps(claim))
        rest = claim.rest
        flipped = rest is None and claim.form == "until"
        gaps = {
            "yes": "" if flipped else self._clause("yes", claim.inner, key),
            "no": self._clause("no", rest or claim.inner, key) if rest or flipped else "",
        }
        return _pick(self.frames[claim.form], claim.form + key).format_map(gaps)

    def _clause(self, side: str, claim: TitleClaim, key: str) -> str:
        kind, _, variant = claim.form.partition(".")
        if kind == "no":
            kind = variant
        elif kind == "cause" or (kind == "issue" and side == "yes"):
            kind = "cause" if "cause" in claim.parts else "fault"
        return _pick(self.clauses[f"{side}.{kind}"], side + key).format_map(self._gaps(claim))

    def _gaps(self, claim: TitleClaim) -> dict[str, str]:
        parts = dict(claim.parts)
        if "n" in parts:
            parts["value"] = value(int(parts["n"]), parts["unit"], self.numbers)
        if "pred" in parts:
            parts["base"] = base(parts["pred"])
            parts["ing"] = ing(parts["base"])
        if "do" in parts:
            parts["doing"] = ing(parts["do"])
        return parts

    def _body(self, claim: TitleClaim, body: str) -> str:
        """Write each sentence anew: what it carries, or, if nothing, one of the same use; by the words of the body."""
        subject = claim.subject
        gaps = {"s": subject, "c": " ".join(subject.split()[2:])}
        written: list[str] = []
        for number, sentence in enumerate(sentences(body)):
            found = carried(sentence)
            kind, parts = found or ("filler", {})
            choices = self.body[kind]
            seed = sentence if kind == "filler" else body[:200]
            at = _number(seed) % len(choices)
            text = choices[at]
            if kind == "filler" and text in written[-6:]:
                text = choices[(at + number) % len(choices)]
            written.append(text)
            written[-1] = self._capital(text.format_map({**gaps, **parts}))
        joined = dict.fromkeys(written)
        return ("\n" if self.numbers == "split" else " ").join(joined)

    def _capital(self, text: str) -> str:
        """Sentences begin with a capital; headlines as they are written."""
        return text if self.numbers == "short" else text[:1].upper() + text[1:]


def names() -> list[str]:
    """Return the rewordings that there are."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def readings(text: str) -> list[str]:
    """Return the forms that an answer may have taken: as it is, with its verb or its number rewritten."""
    forms = [text, base(text), ing(base(text)), ing(text)]
    if match := re.fullmatch(r"(\d+) ([a-z]+)", text):
        forms += [value(int(match[1]), match[2], style) for style in ("words", "short", "split")]
    return list(dict.fromkeys(forms))


def value(number: int, unit: str, style: str) -> str:
    """Return a quantity: `words` writes small numbers out, `short` cuts units short, `split` goes to larger units."""
    if style == "words":
        return f"{_in_words(number)} {unit}" if number < 100 else f"{number:,} {unit}"
    if style == "split" and unit in _LARGER and number >= _LARGER[unit][0]:
        size, large, small = _LARGER[unit]
        whole, left = divmod(number, size)
        return f"{whole} {large} {left} {small}" if left else f"{whole} {large}"
    if unit not in _SHORT or style == "split":
        return f"{number} {unit}"
    return f"{number} %" if unit == "percent" else f"{number} {_SHORT[unit]}"


def base(phrase: str) -> str:
    """Return a phrase in the third person with its verb in the base form: `splits its load` is `split its load`."""
    verb, space, rest = phrase.partition(" ")
    if re.search(r"(ss|x|zz|sh|[^aeo]ch|o)es$", verb):
        verb = verb[:-2]
    elif re.search(r"[^aeiou]ies$", verb):
        verb = verb[:-3] + "y"
    elif verb.endswith("s") and not verb.endswith("ss"):
        verb = verb[:-1]
    return verb + space + rest


def ing(phrase: str) -> str:
    """Return a phrase in the base form with -ing: `split its load` is `splitting its load`."""
    verb, space, rest = phrase.partition(" ")
    before, hyphen, last = verb.rpartition("-")
    if re.search(r"[^eoy]e$", last):
        last = last[:-1]
    elif _DOUBLING.fullmatch(last) or last in _STRESSED_LAST:
        last += last[-1]
    return f"{before}{hyphen}{last}ing{space}{rest}"


def _in_words(number: int) -> str:
    if number < len(_ONES):
        return _ONES[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens] + (f"-{_ONES[ones]}" if ones else "")


def _pick(choices: Sequence[str], seed: str) -> str:
    return choices[_number(seed) % len(choices)]


def _number(seed: str) -> int:
    """Return the same number for the same text in every process."""
    return int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "big")
