"""Forgetting what somebody asks for in words, and nothing else.

    python -m benchmarks.forgetting FILE... [--json] [--embedder local|none]

Each line of a FILE (such as `benchmarks/data/forgetting.jsonl`) is `{"id", "category", "facts": [text, ...],
"mutations": [{"op": "supersede", "query", "new"} | {"op": "release" or "purge", "query"}], "probe": question,
"must": [...], "must_not": [...]}`. The facts are stored in a fresh memory, the mutations asked for in words, the probe
is searched, ten results, and a case is passed when all of `must` and nothing of `must_not` can be read in what
`memory_search` shows, whatever the case of the letters.

`score` is the share of cases passed, of 100, as are those of the categories; `over_deletion` the share of cases in
which something of `must` is in no memory any more; `not_shown` the share in which it is there but was not shown.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.memories import FileStorage
from agent_memory.service import MemoryService, views
from agent_memory.settings import ServiceSettings
from benchmarks._drift_product import shown_text

if TYPE_CHECKING:
    from collections.abc import Sequence

RESULTS: Final = 10
_NEEDED: Final = frozenset({"id", "category", "facts", "mutations", "probe", "must", "must_not"})


@dataclass(frozen=True)
class Outcome:
    """What became of one case.

    Attributes:
        missing: What of `must` was not shown.
        lost: What of `must` is in no memory any more.
        leaked: What of `must_not` was shown.
    """

    case: str
    category: str
    missing: tuple[str, ...]
    lost: tuple[str, ...]
    leaked: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether what had to go is gone and the rest is shown."""
        return not (self.missing or self.lost or self.leaked)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; 2 when the arguments make no sense."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forgetting", description=__doc__.partition("\n")[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("--failed", action="store_true", help="also tell which cases failed, and how")
    parser.add_argument("--embedder", choices=("local", "none"), default="local", help="none: by words alone")
    args = parser.parse_args(argv)
    try:
        cases = [case for path in args.files for case in load(path)]
    except (OSError, ValueError) as error:
        parser.error(str(error))
    outcomes = asyncio.run(run(cases, args.embedder))
    report = summary(outcomes)
    if args.failed:
        report["failed"] = [vars(one) for one in outcomes if not one.passed]
    print(json.dumps(report, ensure_ascii=False) if args.json else _text(report))
    return 0


def load(path: Path) -> list[dict[str, Any]]:
    """Read cases.

    Raises:
        ValueError: A line is no case; names it.
    """
    cases = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        case = json.loads(line)
        if absent := _NEEDED - case.keys():
            raise ValueError(f"{path}, line {number}: without {', '.join(sorted(absent))}")
        cases.append(case)
    return cases


async def run(cases: list[dict[str, Any]], embedder: str = "local") -> list[Outcome]:
    """Return the outcome of each case."""
    settings = ServiceSettings.model_validate({"embedder": embedder})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return [
            await _outcome(case, MemoryService(FileStorage(f"case-{number}", folder, settings=settings), settings))
            for number, case in enumerate(cases)
        ]


async def _outcome(case: dict[str, Any], service: MemoryService) -> Outcome:
    try:
        for text in case["facts"]:
            await service.store({"content": text})
        await service.admin.prepare()
        for mutation in case["mutations"]:
            await _mutate(service, mutation)
        await service.admin.prepare()
        found = await service.search(case["probe"], RESULTS)
        shown = "\n".join(shown_text(views.brief_hit(hit)) for hit in found.near).lower()
        kept = "\n".join(memory.content for memory in await service.admin.everything()).lower()
    finally:
        await service.close()
    return Outcome(
        case["id"],
        case["category"],
        missing=tuple(text for text in case["must"] if text.lower() not in shown),
        lost=tuple(text for text in case["must"] if text.lower() not in kept),
        leaked=tuple(text for text in case["must_not"] if text.lower() in shown),
    )


async def _mutate(service: MemoryService, mutation: dict[str, Any]) -> None:
    """Do what was asked for in words as a tool does it: what the preview shows, and no more."""
    preview = await service.requests.preview(mutation["query"])
    if mutation["op"] == "supersede":
        whole = preview.gone[0].id if len(preview.gone) == 1 and not preview.cut else None
        if whole is None and preview:
            await service.requests.forget(preview)
        await service.store({"content": mutation["new"], "supersedes": whole})
    elif preview:
        reason = "asked for" if mutation["op"] == "release" else ""
        await service.requests.forget(preview, reason=reason)


def summary(outcomes: list[Outcome]) -> dict[str, Any]:
    """Return the shares, of 100."""
    by: defaultdict[str, list[bool]] = defaultdict(list)
    for one in outcomes:
        by[one.category].append(one.passed)
    return {
        "score": _share([one.passed for one in outcomes]),
        "passed": sum(one.passed for one in outcomes),
        "cases": len(outcomes),
        "by_category": {name: _share(passed) for name, passed in sorted(by.items())},
        "over_deletion": _share([bool(one.lost) for one in outcomes]),
        "not_shown": _share([bool(set(one.missing) - set(one.lost)) for one in outcomes]),
        "leaked": _share([bool(one.leaked) for one in outcomes]),
    }


def _share(passed: list[bool]) -> float:
    return round(100 * sum(passed) / len(passed), 1) if passed else 0.0


def _text(report: dict[str, Any]) -> str:
    lines = [f"passed {report['passed']} of {report['cases']}: {report['score']} %"]
    worst_first = sorted(report["by_category"].items(), key=lambda pair: pair[1])
    lines += [f"  {name:16}{share:6.1f}" for name, share in worst_first]
    lines += [f"{name:18}{report[name]:6.1f} %" for name in ("over_deletion", "not_shown", "leaked")]
    for one in report.get("failed", ()):
        lines.append(f"{one['case']}: not shown {one['missing']}, gone {one['lost']}, shown {one['leaked']}")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
