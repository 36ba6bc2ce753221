"""The rules of gitleaks on the same texts, with nothing of ours around.

A tool reports secrets; here each occurrence of what it reports is taken out of the text.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from agent_memory.redaction.providers import DATA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Redact = Callable[[str], str]

_REST: Final = json.loads(Path(__file__).with_name("gitleaks.json").read_text(encoding="utf-8"))
_BASE64: Final = re.compile(r"[\w/+-]{16,}={0,3}", re.ASCII)
_HEX: Final = re.compile(r"[0-9A-Fa-f]{32,}")
_PERCENT: Final = re.compile(r"\S*%[0-9A-Fa-f]{2}\S*")


def gitleaks(text: str) -> str:
    """Return `text` without what gitleaks' rules find in it, and the encoded parts in which they find something.

    As gitleaks does it: a rule is tried when a keyword occurs, a secret needs its entropy, and lists say what is
    allowed. One level of base64, hex and percent is decoded. Rules that look at names of files are left out.
    """
    spans = [span for span, _ in _found(text)]
    for pattern, decode in ((_BASE64, _from_base64), (_HEX, _from_hex), (_PERCENT, unquote)):
        for match in pattern.finditer(text):
            plain = decode(match[0])
            if plain and plain != match[0] and next(_found(plain), None):
                spans.append(match.span())
    return _without(text, spans)


PEERS: Final[dict[str, Redact]] = {
    "gitleaks' rules": gitleaks,
}


@cache
def _rules() -> tuple[tuple[dict[str, Any], re.Pattern[str]], ...]:
    rules = [*DATA["rules"], _REST["generic"]]
    return tuple((rule, re.compile(rule["regex"], re.ASCII)) for rule in rules)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def _found(text: str) -> Iterator[tuple[tuple[int, int], str]]:
    lowered = text.lower()
    for rule, pattern in _rules():
        if rule["keywords"] and not any(keyword in lowered for keyword in rule["keywords"]):
            continue
        for match in pattern.finditer(text):
            group = rule.get("secretGroup") or next((n for n, part in enumerate(match.groups(), 1) if part), 0)
            if _entropy(match[group]) > rule.get("entropy", 0) and not _is_allowed(rule, match, group, text):
                yield match.span(group), rule.get("id", "generic")


def _is_allowed(rule: dict[str, Any], match: re.Match[str], group: int, text: str) -> bool:
    secret = match[group]
    start, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
    targets = {"match": match[0], "line": text[start : end if end >= 0 else len(text)], "secret": secret}
    lists = [_REST, *rule.get("allowlists", ())]
    return any(
        any(_compiled(each).search(targets[list_.get("regexTarget", "secret")]) for each in list_.get("regexes", ()))
        or any(word in secret.lower() for word in list_.get("stopwords", ()))
        for list_ in lists
    )


def _entropy(text: str) -> float:
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


def _from_base64(text: str) -> str | None:
    try:
        data = base64.b64decode(
            text.rstrip("=").replace("-", "+").replace("_", "/") + "=" * (-len(text.rstrip("=")) % 4)
        )
    except binascii.Error:
        return None
    return _ascii(data)


def _from_hex(text: str) -> str | None:
    return _ascii(bytes.fromhex(text[: len(text) // 2 * 2]))


def _ascii(data: bytes) -> str | None:
    return data.decode("ascii") if data.isascii() and data.decode("ascii").replace("\n", "").isprintable() else None


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    for secret in sorted({text[start:end] for start, end in spans}, key=len, reverse=True):
        text = text.replace(secret, "[redacted]")
    return text
