"""Measure times and memory by the number of memories, against budgets.

    python -m benchmarks.scale [--sizes 1000,10000,100000,1000000] [--rounds 200]
                                [--embedder languages] [--json]

For each size an agent remembers one synthetic sentence after the other over a year, a line of the journal each, with
vectors in clusters in the cache; the files were just written, so the system has them in memory. Then, in fresh
processes, one after the other: all is sealed from nothing (from 250 on, as the product does); sessions begin, search,
list, and show the scratchpad; the doctor looks at all files; then what changes them: catching up with what another
process wrote, compacting while another one stores, and storing. Each figure goes to standard error once it is known.

A start is measured from making the storage to the first answer, imports done; by words without an embedder, and hybrid
with the query embedded by the local model. `model loaded` means that the process has loaded the model before, as it has
imported its modules; the row that includes the loading has no budget, since that time does not depend on memories. All
these begin with everything sealed; one row begins with as many memories behind the segments as are not sealed yet.

Memory is read from /proc/PID/smaps_rollup, of a process and its children, in MB of 1,000,000 bytes. `private` are
anonymous pages (`Anonymous`: heap, stacks and arrays). `mapped` is the rest of `Rss`: pages of files, which processes
share and the system drops when it needs room; segments are read that way.

An exponent is that of the power of the number of memories that fits the medians best, by least squares over logarithms:
0 does not grow, 1 grows as the memories do. A budget is for its number of memories and all below, down to the next one,
and is compared with the 95th percentile, which is the slowest of seven sessions and of a few compactions. A million
memories take 8 GB of disk and some minutes.

With `--embedder languages` each memory has vectors of two models, and only what reads them is measured.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.store.memory_storage import SEALED_AT
from benchmarks.harness import build_parser, print_report
from benchmarks.scale.compaction import compaction
from benchmarks.scale.data import fill
from benchmarks.scale.process import figures_of
from benchmarks.scale.report import document, is_kept, table
from benchmarks.scale.scratchpad import scratchpads
from benchmarks.scale.start_process import starts, unsealed_starts
from benchmarks.scale.whole_run import doctor, exporting, sealing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.scale.figures import BenchmarkFigure

SESSIONS: Final = 7
_PROMPTS: Final = {
    "scratchpad, first of a session, processor time": "first prompt of a session, processor time",
    "the same where the journal has to be read": "the same where nothing was kept for it",
}
_LATER_PROMPTS: Final = 20


def measure(
    root: Path,
    size: int,
    rounds: int,
    sessions: int = SESSIONS,
    sealed_at: int = SEALED_AT,
    embedder: str = "local",
) -> Iterator[BenchmarkFigure]:
    """Measure an agent of one size; yield the figures.

    Args:
        root: An empty folder.
        size: Its memories.
        rounds: Calls behind each percentile.
        sessions: Starts of each way.
        sealed_at: Seal from so many memories on.
        embedder: `local`, or `languages` for two models; then only what reads vectors is measured.
    """
    fill(root, size, embedder)
    yield from sealing(root, size, sealed_at, embedder)
    yield from starts(root, size, sessions, embedder)
    yield from figures_of("scale.search", "asking", root, size, rounds, embedder)
    if embedder != "local":
        return
    yield from prompts(root, size)
    yield from doctor(root, size)
    yield from exporting(root, size)
    yield from figures_of("scale.search", "catching up", root, size, rounds)
    yield from compaction(root, size)
    figures_of(
        "scale.whole_run", "seal", root, size, sealed_at, embedder
    )  # or a child may begin to in the midst of stores
    yield from figures_of("scale.store", "one by one", root, size, rounds)
    yield from figures_of("scale.store", "in bulk", root, size, rounds)
    figures_of("scale.whole_run", "seal", root, size, 1, embedder)
    yield unsealed_starts(root, size, sessions, sealed_at - 1)


def prompts(root: Path, size: int) -> list[BenchmarkFigure]:
    """Measure the first request of sessions."""
    figures = scratchpads(root, size, _LATER_PROMPTS)
    return [replace(figure, what=_PROMPTS[figure.what], budget=None) for figure in figures if figure.what in _PROMPTS]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; 0 when every budget was kept."""
    parser = build_parser("scale", __doc__, "--rounds", "--json")
    parser.add_argument("--sizes", default="1000,10000,100000,1000000", help="numbers of memories, with commas")
    parser.add_argument("--embedder", choices=["local", "languages"], default="local", help="one model, or two")
    args = parser.parse_args(argv)
    figures = []
    for size in (int(part) for part in args.sizes.split(",")):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root:
            for item in measure(Path(root), size, args.rounds, embedder=args.embedder):
                print(f"{size:>9,}  {item.what}: {item.p50:g} / {item.p95:g} {item.unit}", file=sys.stderr)
                figures.append(item)
    print_report(document(figures), [table(figures)], as_json=args.json)
    return 0 if all(map(is_kept, figures)) else 1
