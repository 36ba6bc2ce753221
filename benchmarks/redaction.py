"""How many planted secrets the redactor leaves, how much else it touches, what it costs; beside detect-secrets alone.

    .venv/bin/python -m benchmarks.redaction [--seed N ...] [--each N] [--show GROUP] [--without-rivals] [--output FILE]

Every run makes its own secrets. The rules were tuned on the kinds in `first`; `later` were written after that, and
`last` after tuning on those. What each set showed when it was new stands in docs/trust.md: so many of what is new leak.
A secret counts as left over if any part of it is. Figures are shares; `mean_leak` is the mean over groups.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.redaction import SecretRedactor
from benchmarks._redaction_clean import CLEAN
from benchmarks._redaction_first import FIRST
from benchmarks._redaction_kinds import GROUPS, Kind, Planted
from benchmarks._redaction_last import LAST
from benchmarks._redaction_later import LATER, LATER_CLEAN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Redact = Callable[[str], str]

SEEDS: Final = (101, 102, 103)
"""Not those the rules were tuned on (1 to 9)."""
SETS: Final[dict[str, tuple[Kind, ...]]] = {
    "first": FIRST,
    "later": LATER,
    "last": LAST,
    "all": (*FIRST, *LATER, *LAST),
}
_PROSE: Final = (
    "We decided to keep the ledger in PostgreSQL 16 because the reporting team in Lisbon needs window functions, and "
    "the password policy stays with the platform group. "
)
_BOMBS: Final = {
    "BEGIN": "-----BEGIN RSA PRIVATE" + " KEY-----\n",
    "END": "-----END RSA PRIVATE" + " KEY-----\n",
    "password is": "password is ",
    "digits": "1234 ",
    "base64": "aGVsbG8gd29ybGQgb2YgYnl0ZXM",
    "percent": "%70%61",
    "quotes": 'password="',
}


def main() -> None:
    """Run and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, nargs="*", default=SEEDS)
    parser.add_argument("--each", type=int, default=3, help="secrets of each kind and seed")
    parser.add_argument(
        "--show", metavar="GROUP", help="print what is left of a group, or of clean statements: 'clean'"
    )
    parser.add_argument("--kinds", choices=SETS, default="all", help="for --show")
    parser.add_argument("--without-rivals", action="store_true")
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args()
    ours = SecretRedactor()
    if chosen.show:
        _show(lambda text: ours.redact(text).text, chosen.show, SETS[chosen.kinds], chosen)
        return
    methods: dict[str, Redact] = {"agent-memory": lambda text: ours.redact(text).text}
    if not chosen.without_rivals:
        methods["detect-secrets"] = _detect_secrets()
    report: dict[str, Any] = {"seeds": list(chosen.seed), "kinds": {name: len(kinds) for name, kinds in SETS.items()}}
    report |= {name: _measured(redact, chosen.seed, chosen.each) for name, redact in methods.items()}
    report["agent-memory"]["cpu"] = _cost(methods["agent-memory"])
    text = json.dumps(report, indent=2, ensure_ascii=False)
    print(text)
    if chosen.output:
        chosen.output.write_text(text + "\n", encoding="utf-8")


def _measured(redact: Redact, seeds: Iterable[int], each: int) -> dict[str, Any]:
    seeds = tuple(seeds)
    leaks = {name: _leaks(redact, kinds, seeds, each) for name, kinds in SETS.items()}
    return {"leaks": leaks, "clean": _touched(redact, seeds)}


def planted(kinds: Iterable[Kind], seed: int, each: int) -> Iterable[tuple[Kind, Planted]]:
    """Yield `each` secrets of every kind, the same for the same seed whatever other kinds there are."""
    for kind in kinds:
        rng = random.Random(f"{seed} {kind.group} {kind.name}")
        for _ in range(each):
            yield kind, kind.make(rng)


def statements(seed: int) -> Iterable[tuple[str, str]]:
    """Yield class and text of what holds no secret."""
    for name, (count, make) in (CLEAN | LATER_CLEAN).items():
        rng = random.Random(f"{seed} {name}")
        for _ in range(count):
            yield name, make(rng)


def leaks(redact: Redact, secret: Planted) -> bool:
    """Tell whether any part of a secret is left over."""
    text = redact(secret.text)
    return any(part in text for part in secret.secrets)


def _leaks(redact: Redact, kinds: Iterable[Kind], seeds: Iterable[int], each: int) -> dict[str, Any]:
    left: dict[str, list[bool]] = defaultdict(list)
    for seed in seeds:
        for kind, secret in planted(kinds, seed, each):
            left[kind.group].append(leaks(redact, secret))
    groups = {group: f"{sum(left[group])}/{len(left[group])}" for group in GROUPS if left[group]}
    shares = [sum(each) / len(each) for each in left.values()]
    count = sum(map(len, left.values()))
    return {
        "secrets": count,
        "groups": groups,
        "mean_leak": round(sum(shares) / len(shares), 4),
        "leak": round(sum(map(sum, left.values())) / count, 4),
    }


def _touched(redact: Redact, seeds: Iterable[int]) -> dict[str, Any]:
    touched: dict[str, list[bool]] = defaultdict(list)
    for seed in seeds:
        for name, text in statements(seed):
            touched[name].append(redact(text) != text)
    count = sum(map(len, touched.values()))
    classes = {name: f"{sum(each)}/{len(each)}" for name, each in touched.items()}
    return {"statements": count, "classes": classes, "touched": round(sum(map(sum, touched.values())) / count, 4)}


def _cost(redact: Redact) -> dict[str, float]:
    """Return milliseconds of CPU, the best of a few: prose by its length, 40,000 characters of what is repeated."""
    texts = {
        f"prose, {size:,} characters": (_PROSE * (size // len(_PROSE) + 1))[:size] for size in (100, 1_000, 10_000)
    }
    texts |= {f"{name} repeated, 40,000": (part * (40_000 // len(part) + 1))[:40_000] for name, part in _BOMBS.items()}
    return {name: _milliseconds(redact, text) for name, text in texts.items()}


def _milliseconds(redact: Redact, text: str) -> float:
    best = float("inf")
    for _ in range(20 if len(text) < 20_000 else 3):
        started = time.process_time()
        redact(text)
        best = min(best, time.process_time() - started)
    return round(best * 1000, 3)


def _detect_secrets() -> Redact:
    """Return detect-secrets with its default plugins, line by line as its scanner reads text, and nothing around it."""
    from detect_secrets.core.scan import scan_line  # half a second, only for the comparison
    from detect_secrets.settings import default_settings

    def redact(text: str) -> str:
        with default_settings():
            found = {each.secret_value for line in text.splitlines() for each in scan_line(line)}
        for secret in sorted(filter(None, found), key=len, reverse=True):
            text = text.replace(secret, "[redacted]")
        return text

    return redact


def _show(redact: Redact, group: str, kinds: Iterable[Kind], chosen: argparse.Namespace) -> None:
    for seed in chosen.seed:
        if group == "clean":
            lines = [f"{name}: {redact(text)[:300]!r}" for name, text in statements(seed) if redact(text) != text]
        else:
            lines = [
                f"{kind.group}, {kind.name}: {secret.text[:200]!r} -> {redact(secret.text)[:200]!r}"
                for kind, secret in planted(kinds, seed, chosen.each)
                if group in {kind.group, "all"} and leaks(redact, secret)
            ]
        sys.stdout.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()
