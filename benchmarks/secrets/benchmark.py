"""Measure leaked secrets, touched statements and CPU time of the redactor.

    .venv/bin/python -m benchmarks.secrets [--data FILE] [--seed N ...] [--output FILE]

Every run makes its own secrets. The rules were tuned on the kinds in `first`; `later`, `last`, `newest`, `fresh` and
`unmet` were each written after tuning on those before; nothing was tuned on `apart`. docs/benchmarks.md has what each
lot showed when it was new. A secret counts as left over if half of it is, in one piece. Figures are shares; the mean
is over groups. `--data` reads JSON lines, each with "text", a list "secrets" (none: the text is clean), and
optionally "group" and "label". Prints Markdown tables; `--output` writes everything as JSON.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_memory.redaction import SecretRedactor
from benchmarks.harness import build_parser, read_jsonl
from benchmarks.secrets.kinds import GROUPS, SETS, PlantedSecret, plant
from benchmarks.secrets.peers import PEERS
from benchmarks.secrets.statements import make_statements

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    Redact = Callable[[str], str]

OURS: Final = "agent-memory"
_REDACTOR: Final = SecretRedactor()
SEEDS: Final = (101, 102, 103)
"""Not those the rules were tuned on (1 to 9)."""
_EACH: Final = 3
"""Secrets of each kind and seed."""
_PROSE: Final = (
    "We decided to keep the ledger in PostgreSQL 16 because the reporting team in Lisbon needs window functions, and "
    "the password policy stays with the platform group. "
)


class LabelledText(NamedTuple):
    """A text with secrets, its group and its label."""

    group: str
    label: str
    secret: PlantedSecret


def main() -> None:
    """Measure and print tables."""
    parser = build_parser("secrets", __doc__)
    parser.add_argument("--seed", type=int, nargs="*", default=SEEDS)
    parser.add_argument("--data", type=Path, help="JSON lines to measure with instead")
    parser.add_argument("--without-rivals", action="store_true")
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args()
    lots, clean = _read(chosen.data) if chosen.data else _made(chosen)
    methods: dict[str, Redact] = {OURS: _ours} | ({} if chosen.without_rivals else PEERS)
    report: dict[str, Any] = {name: measured(redact, lots, clean) for name, redact in methods.items()}
    report["cpu"] = _cost(_ours)
    print(tables(report))
    if chosen.output:
        about = {"seeds": list(chosen.seed), "kinds": {name: len(kinds) for name, kinds in SETS.items()}}
        chosen.output.write_text(json.dumps(about | report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _ours(text: str) -> str:
    return _REDACTOR.redact(text).text


def _read(path: Path) -> tuple[dict[str, list[LabelledText]], list[tuple[str, str]]]:
    """Return the secrets and the clean lines of a file."""
    several = read_jsonl(path)
    lot = [
        LabelledText(row.get("group", "all"), row.get("label", ""), PlantedSecret(row["text"], tuple(row["secrets"])))
        for row in several
        if row.get("secrets")
    ]
    return {"data": lot}, [(line.get("group", "clean"), line["text"]) for line in several if not line.get("secrets")]


def _made(chosen: argparse.Namespace) -> tuple[dict[str, list[LabelledText]], list[tuple[str, str]]]:
    lots = {
        name: [
            LabelledText(kind.group, kind.name, secret)
            for seed in chosen.seed
            for kind, secret in plant(kinds, seed, _EACH)
        ]
        for name, kinds in SETS.items()
    }
    return lots, [statement for seed in chosen.seed for statement in make_statements(seed)]


def measured(redact: Redact, lots: dict[str, list[LabelledText]], clean: list[tuple[str, str]]) -> dict[str, Any]:
    """Return leaked secrets by group, and touched statements by class."""
    return {"leaks": {name: _leaks(redact, lot) for name, lot in lots.items()}, "clean": _touched(redact, clean)}


def leaks(redact: Redact, secret: PlantedSecret) -> bool:
    """Return True if half of a secret is left in one piece.

    Of a short one six characters are enough.
    """
    text = redact(secret.text)
    return any(_is_left(part, text) for part in secret.secrets)


def _is_left(secret: str, text: str) -> bool:
    size = min(len(secret), max(6, (len(secret) + 1) // 2))
    return secret in text or any(secret[number : number + size] in text for number in range(len(secret) - size + 1))


def _leaks(redact: Redact, lot: list[LabelledText]) -> dict[str, Any]:
    leaked: dict[str, list[bool]] = defaultdict(list)
    for line in lot:
        leaked[line.group].append(leaks(redact, line.secret))
    order = [group for group in GROUPS if group in leaked] + sorted(leaked.keys() - set(GROUPS))
    shares = {group: sum(leaked[group]) / len(leaked[group]) for group in order}
    count = sum(map(len, leaked.values()))
    return {
        "secrets": count,
        "groups": {group: f"{sum(leaked[group])}/{len(leaked[group])}" for group in order},
        "mean": round(sum(shares.values()) / max(1, len(shares)), 4),
        "worst": max(shares, key=lambda group: shares[group], default=""),
        "of all": round(sum(map(sum, leaked.values())) / max(1, count), 4),
    }


def _touched(redact: Redact, clean: list[tuple[str, str]]) -> dict[str, Any]:
    touched: dict[str, list[bool]] = defaultdict(list)
    for name, text in clean:
        touched[name].append(redact(text) != text)
    count = sum(map(sum, touched.values()))
    classes = {name: f"{sum(touches)}/{len(touches)}" for name, touches in touched.items()}
    return {"statements": len(clean), "classes": classes, "touched": round(count / max(1, len(clean)), 4)}


def tables(report: dict[str, Any]) -> str:
    """Return Markdown tables by method, group and class, and CPU time."""
    cpu, methods = report["cpu"], {name: each for name, each in report.items() if name != "cpu"}
    lots = list(methods[OURS]["leaks"])
    rows = [["", *(f"{lot}: mean, of all" for lot in lots), "clean touched"]]
    for name, method in methods.items():
        figures = [f"{method['leaks'][lot]['mean']:.1%}, {method['leaks'][lot]['of all']:.1%}" for lot in lots]
        rows.append([name, *figures, f"{method['clean']['touched']:.1%} of {method['clean']['statements']}"])
    groups = [[f"left over of {lots[-1]}", *methods]]
    groups += [
        [group, *(method["leaks"][lots[-1]]["groups"][group] for method in methods.values())]
        for group in methods[OURS]["leaks"][lots[-1]]["groups"]
    ]
    classes = [["clean touched", *methods]]
    classes += [
        [name, *(method["clean"]["classes"][name] for method in methods.values())]
        for name in methods[OURS]["clean"]["classes"]
    ]
    times = [["CPU", "ms"], *([name, f"{value:.2f}"] for name, value in cpu.items())]
    return "\n\n".join(map(_table, (rows, groups, classes, times)))


def _table(rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def _cost(redact: Redact) -> dict[str, float]:
    """Return the least CPU milliseconds for prose."""
    texts = {size: (_PROSE * (size // len(_PROSE) + 1))[:size] for size in (120, 1_000, 10_000)}
    return {f"prose, {size:,} characters": _milliseconds(redact, text) for size, text in texts.items()}


def _milliseconds(redact: Redact, text: str) -> float:
    best = float("inf")
    for _ in range(20):
        started = time.process_time()
        redact(text)
        best = min(best, time.process_time() - started)
    return round(best * 1000, 3)
