"""Secrets known by rules that others publish and keep: gitleaks' rules of some 200 providers, as data.

`patterns/gitleaks.json` names source, commit and licence (MIT) and is made by `python -m scripts.gitleaks`; nothing in
it is changed by hand. Most rules name a prefix, the others a provider, a sign and a key. A rule is compiled when one of
its keywords occurs for the first time.
"""

from __future__ import annotations

import functools
import json
import re
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from agent_memory.redaction.protocol import Finding
from agent_memory.redaction.shapes import entropy, is_placeholder

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def find_published(text: str) -> Iterator[Finding]:
    """Yield every secret in `text` that a published rule finds."""
    lowered = text.lower()
    tried: set[int] = set()
    for keyword, numbers in _KEYWORDS.items():
        if keyword in lowered:
            tried.update(numbers)
    for number in sorted(tried):
        yield from _by_rule(number, text)


def _by_rule(number: int, text: str) -> Iterator[Finding]:
    rule = DATA["rules"][number]
    pattern, allowed = _compiled(number)
    for match in pattern.finditer(text):
        group = rule.get("secretGroup") or next((n for n, part in enumerate(match.groups(), 1) if part), 0)
        secret = match[group]
        if is_placeholder(secret) or entropy(secret) <= rule.get("entropy", 0):
            continue
        if not any(each.search(secret) for each in allowed):
            yield Finding(*match.span(group), "api-key")


@functools.cache
def _compiled(number: int) -> tuple[re.Pattern[str], tuple[re.Pattern[str], ...]]:
    rule = DATA["rules"][number]
    allowed = [each for one in rule.get("allowlists", ()) for each in one.get("regexes", ())]
    return re.compile(rule["regex"], re.ASCII), tuple(re.compile(each, re.ASCII) for each in allowed)
