"""Secrets known by their own form: provider keys, URLs, card numbers.

`patterns/gitleaks.json` has the rules of gitleaks (MIT; source and commit are in it) and is made by `python -m
scripts.gitleaks`; a rule is compiled when one of its keywords occurs first. `patterns/providers.yaml` has our own forms
(sources: each provider's documentation, the rules of detect-secrets and gitleaks), each with

- `kind`: kind that the marker names;
- `starts`: literals; each match has one of them (fast), in any case where the pattern ignores case;
- `anywhere`: the text holds one of `starts`, a match need not;
- `line_breaks`: how many line breaks a match may hold, 0 by default;
- `pattern`: linear; its group `s`, `t` or `u`, if any, is the secret;
- `check`: name of a check that a match has to pass.
"""

from __future__ import annotations

import functools
import json
import re
from importlib import resources
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_memory.language.languages import load_patterns
from agent_memory.redaction.findings import (
    LITERALS,
    LOWERED_LITERALS,
    TWO_LETTERS,
    SecretFinding,
    iter_digit_matches,
    iter_matches,
    lower_letters,
    value_in,
)
from agent_memory.redaction.shapes import entropy, is_placeholder, looks_random, looks_random_alone, passes_luhn
from agent_memory.redaction.unlabelled import is_identifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


class SecretForm(NamedTuple):
    """One form of secrets, an entry of a file.

    Attributes:
        kind: Kind that the marker names.
        starts: Literals, in lower case if the pattern ignores case.
        pattern: Regular expression whose last group, if any, is the secret.
        line_breaks: Most line breaks of a match; None to search the whole text.
        ignores_case: True if the pattern ignores case.
        check: Returns True if a match counts.
        least: Fewest characters of a secret.
    """

    kind: str
    starts: tuple[str, ...]
    pattern: re.Pattern[str]
    line_breaks: int | None
    ignores_case: bool
    check: Callable[[re.Match[str]], bool]
    least: int


def read_forms(
    entries: Iterable[Mapping[str, Any]], checks: Mapping[str, Callable[[re.Match[str]], bool]], least: int = 1
) -> tuple[SecretForm, ...]:
    """Return the forms of a file.

    Args:
        entries: Entries of the file.
        checks: Functions by the names that entries have as `check`.
        least: Fewest characters of a secret.
    """
    return tuple(_read_form(entry, checks, least) for entry in entries)


def _read_form(
    entry: Mapping[str, Any], checks: Mapping[str, Callable[[re.Match[str]], bool]], least: int
) -> SecretForm:
    """Return a form, with lower-case starts if its pattern ignores case."""
    pattern = re.compile(entry["pattern"])
    ignores_case = bool(pattern.flags & re.IGNORECASE)
    starts = tuple(dict.fromkeys(start.lower() if ignores_case else start for start in entry["starts"]))
    (LOWERED_LITERALS if ignores_case else LITERALS).add(starts)
    line_breaks = None if entry.get("anywhere") else entry.get("line_breaks", 0)
    check = checks[entry["check"]] if "check" in entry else lambda _: True
    return SecretForm(entry["kind"], starts, pattern, line_breaks, ignores_case, check, least)


def find_by_forms(forms: Iterable[SecretForm], text: str, lowered: str) -> Iterator[SecretFinding]:
    """Yield the secrets of some forms.

    Args:
        forms: Forms to search, in order.
        text: Text to search in.
        lowered: The text in lower case, letter by letter.
    """
    present = {True: LOWERED_LITERALS.find(lowered), False: LITERALS.find(text)}
    for form in forms:
        if present[form.ignores_case].isdisjoint(form.starts):
            continue
        if form.line_breaks is None:
            matches = form.pattern.finditer(text)
        else:
            searched = lowered if form.ignores_case else text
            matches = iter_matches(form.pattern, form.starts, text, searched, form.line_breaks)
        for match in matches:
            value, first = value_in(match)
            if len(value) >= form.least and not is_placeholder(value) and form.check(match):
                yield SecretFinding(first, first + len(value), form.kind)


_FIELD_NAMES: Final = frozenset(("pass", "passwd", "password", "pwd", "secret"))
"""Placeholders of a password in the address of a manual."""
_CARD: Final = re.compile(r"(?<![\w./-])\d(?:[ -]?\d){12,18}(?![\w-])")
_CARD_WORD: Final = re.compile(
    r"(?i)(?:\b(?:visa|amex|mastercard|kreditkarte\w*|carte|tarjeta|cart[aã]o)\b|card|カード|信用卡)[^\n\d]{0,40}$"
)
_CARD_DIGITS: Final = 16
_MOST_CARD_GROUPS: Final = 5
# Labels of other numbers of that length; one in ten passes Luhn's check.
_COUNTED: Final = re.compile(
    r"(?i)\b(?:order|orders|tracking|invoice|ticket|serial|id|ids|ref|reference|timestamp|shipment|parcel|case|batch|sku|isbn"
    r"|imei|bestell\w{0,10}|commande|pedido|snowflake|epoch|at|event|message|job|run|chat|user)\b[^\n\d]{0,24}\Z"
)
_CARD_GROUPS: Final = re.compile(r"[3-6]\d{3}([ -])\d{4}\1\d{4}\1\d{4}|3[47]\d{2}([ -])\d{6}\2\d{5}")
_IBAN: Final = re.compile(r"(?<![\w-])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![\w-])")
_LONG_TOKEN: Final = re.compile(r"(?<![\w+/=.-])[A-Za-z0-9+/_-]{32,512}+={0,2}(?![\w+/=-])")
FORMS: Final = read_forms(
    load_patterns("agent_memory.redaction", "providers")["forms"],
    {
        "random": lambda match: looks_random(value_in(match)[0]),
        "no_field_name": lambda match: value_in(match)[0].lower() not in _FIELD_NAMES,
    },
)
_KEY_BEGIN: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d")
_KEY_END: Final = re.compile(r"-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----|Private-MAC: ?[0-9a-f]{1,80}")
_KEY_LINE: Final = re.compile(
    r"(?:[ \t>|*#\"'\\rn+]{0,8})(?:[A-Za-z0-9+/=]{1,200}|[A-Z][\w-]{1,30}: [^\n]{0,100})?[ \t\\rn\"',]{0,8}"
)


def find_provider_secrets(text: str) -> Iterator[SecretFinding]:
    """Yield every secret in `text` that is recognized by its own form."""
    yield from _find_private_keys(text)
    yield from find_by_forms(FORMS, text, lower_letters(text))
    yield from _find_numbers(text)


def find_random_tokens(text: str) -> Iterator[SecretFinding]:
    """Yield every long token that is a secret by itself."""
    for match in _LONG_TOKEN.finditer(text):
        if looks_random_alone(match[0]) and not is_identifier(match[0]):
            yield SecretFinding(*match.span(), "high-entropy")


def _find_numbers(text: str) -> Iterator[SecretFinding]:
    for match in iter_digit_matches(_CARD, text, least=13):
        before = max(0, match.start() - 60)
        if _CARD_GROUPS.fullmatch(match[0]) or _CARD_WORD.search(text, before, match.start()):
            yield SecretFinding(*match.span(), "credit-card")
        elif _is_series(match[0]):
            continue
        elif passes_luhn(match[0].replace(" ", "").replace("-", "")):
            plain = match[0].isdigit() and (
                len(match[0]) > _CARD_DIGITS or _COUNTED.search(text, before, match.start())
            )
            if not plain:
                yield SecretFinding(*match.span(), "credit-card")
        elif (end := _find_card_end(match[0])) is not None:
            yield SecretFinding(match.start(), match.start() + end, "credit-card")
    for match in iter_digit_matches(_IBAN, text, least=2):
        if _is_iban(match[0].replace(" ", "")):
            yield SecretFinding(*match.span(), "iban")


def _is_series(digits: str) -> bool:
    """Return True for numbers with a constant difference: `30 31 32`."""
    numbers = [int(number) for number in re.split("[ -]", digits)]
    differences = {later - earlier for earlier, later in pairwise(numbers)}
    return len(numbers) > _MOST_CARD_GROUPS and len(differences) == 1 and differences != {0}


def _find_card_end(digits: str) -> int | None:
    """Return the end of a card number before other digits.

    Such as the month until which it is valid.
    """
    for match in re.finditer(r" (?=\d{1,4}$)", digits):
        number = digits[: match.start()].replace(" ", "").replace("-", "")
        if len(number) in {15, 16} and passes_luhn(number):
            return match.start()
    return None


def _is_iban(account: str) -> bool:
    """Return True if the check digits of ISO 13616 are right.

    The rotated number, read in base 36, leaves 1 modulo 97.
    """
    rotated = account[4:] + account[:4]
    return int("".join(str(int(character, 36)) for character in rotated)) % 97 == 1


def _find_private_keys(text: str) -> Iterator[SecretFinding]:
    """Yield whole key blocks, and key lines of incomplete ones."""
    if "PRIVATE KEY" not in text and "PuTTY-User-Key" not in text:
        return
    marks = sorted(
        [(*match.span(), True) for match in _KEY_BEGIN.finditer(text)]
        + [(*match.span(), False) for match in _KEY_END.finditer(text)]
    )
    done = 0
    for (start, end, begins), (_, next_end, is_next) in zip(marks, [*marks, (0, 0, True)][1:], strict=True):
        if begins:
            done = _find_key_end(text, end) if is_next else next_end
            yield SecretFinding(start, done, "private-key")
        elif start >= done:
            yield SecretFinding(max(done, _find_key_start(text, start, done)), end, "private-key")
            done = end


def _find_key_end(text: str, start: int) -> int:
    end = start
    while end < len(text):
        line_end = text.find("\n", end + 1)
        line_end = len(text) if line_end < 0 else line_end
        line = text[end:line_end].lstrip("\n")
        if not _KEY_LINE.fullmatch(line) or (" " in line.strip() and ":" not in line):
            break
        end = line_end
    return end


def _find_key_start(text: str, end: int, least: int) -> int:
    start = end
    while start > least:
        line_start = max(least, text.rfind("\n", least, start - 1) + 1)
        if not re.fullmatch(r"[\s>|*#]*[A-Za-z0-9+/=]{4,200}\s*", text[line_start:start]):
            break
        start = line_start
    return start


DATA: Final[dict[str, Any]] = json.loads(
    (resources.files("agent_memory.redaction") / "patterns" / "gitleaks.json").read_text(encoding="utf-8")
)
_LEFT_OUT: Final = frozenset(
    ("private-key", "curl-auth-header", "curl-auth-user", "jwt", "jwt-base64", "sourcegraph-access-token")
)
"""Left to `providers.yaml`: these take more than linear time on hostile text, and the last one commits for keys."""
_KEYWORDS: Final[dict[str, list[int]]] = {}
for _number, _rule in enumerate(DATA["rules"]):
    if _rule["id"] not in _LEFT_OUT:
        for _keyword in _rule["keywords"]:
            _KEYWORDS.setdefault(_keyword, []).append(_number)
LOWERED_LITERALS.add(_KEYWORDS)


def find_published(text: str) -> Iterator[SecretFinding]:
    """Yield every secret in `text` that a published rule finds."""
    lowered = lower_letters(text)
    present: Iterable[str] = LOWERED_LITERALS.find(lowered)
    if TWO_LETTERS in text:
        present = filter(text.lower().__contains__, _KEYWORDS)
    for number in sorted({number for keyword in present for number in _KEYWORDS.get(keyword, ())}):
        yield from _apply_rule(number, text)


def _apply_rule(number: int, text: str) -> Iterator[SecretFinding]:
    rule = DATA["rules"][number]
    pattern, allowed = _compile_rule(number)
    for match in pattern.finditer(text):
        group = rule.get("secretGroup") or next((n for n, part in enumerate(match.groups(), 1) if part), 0)
        secret = match[group]
        if is_placeholder(secret) or entropy(secret) <= rule.get("entropy", 0):
            continue
        if not any(regex.search(secret) for regex in allowed):
            yield SecretFinding(*match.span(group), "api-key")


@functools.cache
def _compile_rule(number: int) -> tuple[re.Pattern[str], tuple[re.Pattern[str], ...]]:
    rule = DATA["rules"][number]
    allowed = [regex for allowlist in rule.get("allowlists", ()) for regex in allowlist.get("regexes", ())]
    return re.compile(rule["regex"], re.ASCII), tuple(re.compile(regex, re.ASCII) for regex in allowed)
