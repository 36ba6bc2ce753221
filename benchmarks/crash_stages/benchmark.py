"""Kills processes in each stage of sealing, merging, compaction and group commit, and looks what is left.

    python -m benchmarks.crash_stages [--kills 500] [--seed 0]

Each kill: a process stores, changes and forgets by several callers, seals after a single change, merges, and compacts
beside all that. It dies by SIGKILL right before, right after or half-way through the N-th call that changes a file in
the stage whose turn it is. A stage is told from the functions that are being executed; a process that ends without
having come that far does not count. Now and then whoever seals next is killed as well.

Then a fresh process opens, compares what is there with what was acknowledged, and its answers by words and by vectors
with those of a copy without `derived/`, which reads the whole journal; the doctor looks, and the next sealing must
leave nothing in the folder but what is listed. Ends with 1 if anything was found.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.crash.model import AcknowledgedState, HeardMessages, PendingOperation
from benchmarks.crash.operations import VictimJob, preload
from benchmarks.crash.process import ForkedProcess
from benchmarks.crash_stages.check import examine
from benchmarks.crash_stages.victim import STAGES, seal_next, work
from benchmarks.harness import build_parser, print_report, render_rows

_PATIENCE: Final = 120.0
_ALSO_THE_NEXT: Final = 0.25
_MANY: Final = 150
_TRIES: Final = 12
"""Processes that may end without having come to a stage before that is a finding."""


@dataclass(slots=True)
class StageFigures:
    """Figures of one stage."""

    before: int = 0
    torn: int = 0
    after: int = 0
    next_killed: int = 0
    not_reached: int = 0
    busy: int = 0
    found: int = 0


@dataclass
class StageCampaign:
    """All kills of one run."""

    scratch: Path
    choose: random.Random
    rows: dict[str, StageFigures] = field(default_factory=lambda: {stage: StageFigures() for stage in STAGES.values()})
    problems: list[str] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    begun: int = 0
    root: Path = Path()
    expected: AcknowledgedState = field(default_factory=AcknowledgedState)

    def kill(self, stage: str) -> None:
        """Kill one process in a stage, and judge what it left."""
        row = self.rows[stage]
        for _ in range(_TRIES):
            self._make_room()
            most = self.calls[stage] or 1
            how = self.choose.choice(("before", "after", "torn"))
            heard, struck = self._work(
                VictimJob(stage, self.root, self._seed(), self.choose.randint(1, most), how), row
            )
            if struck:
                break
            row.not_reached += 1
        else:
            self.problems.append(f"{stage}: no process came that far")
            return
        name = struck.split()[0]
        setattr(row, name, getattr(row, name) + 1)
        if self.choose.random() < _ALSO_THE_NEXT:
            next_stage = self.choose.choice(("seal", "merge", "swap of segments.json", "vectors", "removal"))
            job = VictimJob(next_stage, self.root, 0, self.choose.randint(1, max(1, self.calls[next_stage] // 3)), how)
            row.next_killed += self._ended("next", seal_next, job)[1] == -signal.SIGKILL
        messages, _ = self._ended("check", examine, self.root, heard.pending, self.expected, self._seed())
        message: dict[str, Any] = messages[-1] if messages else {"crashed": "it says nothing"}
        wrong = message.get("wrong", [message.get("crashed", "")])
        row.found += len(wrong)
        self.problems += [f"{stage}, {struck}: {what}" for what in wrong]
        self.expected.learn(message.get("now", {}))

    def _work(self, job: VictimJob, row: StageFigures) -> tuple[HeardMessages, str]:
        heard = HeardMessages()
        struck = ""
        messages, _ = self._ended("victim", work, job, self.expected)
        for message in messages:
            heard.take(message, self.expected)
            struck = message.get("struck", struck)
            row.busy += "busy" in message
            if "busy" in message or "crashed" in message:
                self.problems.append(f"{job.do}: {message.get('busy') or message['crashed']}")
            for stage, count in message.get("seen", {}).items():
                self.calls[stage] = max(self.calls[stage], count)
        if not struck:
            heard.pending = PendingOperation()
        return heard, struck

    def _make_room(self) -> None:
        """Begin a folder anew where there is none or it has become large."""
        if self.begun and len(self.expected.memories) < _MANY:
            return
        shutil.rmtree(self.root.parent, ignore_errors=True) if self.begun else None
        self.begun += 1
        self.root, self.expected = self.scratch / f"home{self.begun}" / "memory", AcknowledgedState()
        self.root.mkdir(parents=True)
        for _ in range(2):  # a first one that fills it, and one that tells how many calls there are
            self._work(VictimJob("", self.root, self._seed()), StageFigures())

    def _ended(self, name: str, function: Any, *arguments: object) -> tuple[list[dict[str, Any]], int]:
        child = ForkedProcess(self.scratch / f"{name}.log", function, *arguments)
        messages = child.listen(_PATIENCE)
        child.kill() if child.is_alive and messages == [] else None
        code = child.wait()
        child.close()
        return messages, code

    def _seed(self) -> int:
        return self.choose.getrandbits(32)


def run(kills: int, seed: int) -> dict[str, Any]:
    """Kill so many processes, the stages in turn, and return the report."""
    preload()
    with tempfile.TemporaryDirectory(prefix="stages-") as scratch:
        campaign = StageCampaign(Path(scratch), random.Random(seed))
        stages = list(campaign.rows)
        for number in range(kills):
            campaign.kill(stages[number % len(stages)])
        rows = {stage: asdict(row) for stage, row in campaign.rows.items()}
        return {"seed": seed, "stages": rows, "problems": campaign.problems}


def main() -> None:
    """Kill, judge, print; exit with 1 if anything was found."""
    parser = build_parser("crash_stages", __doc__, "--kills", "--seed", "--json")
    args = parser.parse_args()
    with contextlib.suppress(OSError):
        os.nice(5)
    report = run(args.kills, args.seed)
    total = {name: sum(row[name] for row in report["stages"].values()) for name in asdict(StageFigures())}
    end = report["problems"] or ["nothing lost, nothing half done, nothing left over"]
    lines = [*render_rows("stage", {**report["stages"], "all": total}, 12, first=40), "", *end]
    print_report(report, lines, as_json=args.json)
    sys.exit(1 if report["problems"] else 0)
