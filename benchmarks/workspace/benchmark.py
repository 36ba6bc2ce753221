"""Kills the processes of a workspace, and loads it.

    python -m benchmarks.workspace --kills 200 [--seed 0] [--declaration FILE] [--json]
    python -m benchmarks.workspace --load 16 [--operations 1000] [--url URL] [--json]

With `--kills`: workers do all steps of the declared workspace, and each is killed by SIGKILL at a random moment, as are
processes that make snapshots and go back to them beside the workers. When a round has its kills, workers end the work.
What there is then must be byte by byte what an unkilled run leaves (the canonical export, files by hash), no row may be
there twice or of an attempt that was not finished, every snapshot must be whole, and SQLite must find nothing wrong.

With `--load`: so many processes write and read at once; each write that was acknowledged must be there at the end.
Ends with 1 where something is wrong.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.workspace import Workspace
from agent_memory.workspace.declaration.parser import read_declaration
from benchmarks.harness import build_parser
from benchmarks.workspace import load as _workspace_load
from benchmarks.workspace.worker import seed, work

if TYPE_CHECKING:
    import argparse

PIPELINE: Final = Path(__file__).with_name("pipeline.yaml")
_WORKER: Final = "benchmarks.workspace.worker"
_AT_ONCE: Final = 2
_KILLS_A_ROUND: Final = 20
_LIVES: Final = (0.35, 2.0)
"""Seconds after which a process is killed: some die while they import, most at work."""
_END_SECONDS: Final = 600
"""Seconds after which work that nobody kills any more counts as stuck, on a machine that does other things, too."""


@dataclass
class WorkspaceKills:
    """Numbers of kills, and faults."""

    kills: int = 0
    rounds: int = 0
    killed: Counter[str] = field(default_factory=Counter)
    finished: int = 0
    restores: int = 0
    wrong: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON can carry it; `asdict` makes pairs of the items of a Counter before Python 3.12."""
        return vars(self) | {"killed": dict(self.killed)}


def main() -> int:
    """Run what the command line asks for; return the exit status."""
    parser = build_parser("workspace", __doc__, "--kills", "--seed", "--json", kills=None)
    parser.add_argument("--load", type=int, metavar="PROCESSES")
    parser.add_argument("--operations", type=int, default=1000)
    parser.add_argument("--url")
    parser.add_argument("--declaration", type=Path, default=PIPELINE)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="workspace-") as folder:
        if options.load:
            return _workspace_load.run(
                Path(folder), options.load, options.operations, options.url, as_json=options.json
            )
        return _kill(Path(folder), options)


def _kill(folder: Path, options: argparse.Namespace) -> int:
    begun = time.monotonic()
    read_declaration(options.declaration)
    wanted = unkilled(folder / "whole", options.declaration)
    report, chance = WorkspaceKills(), random.Random(options.seed)
    while report.kills < (options.kills or 0):
        report.rounds += 1
        kills = min(_KILLS_A_ROUND, options.kills - report.kills)
        _round(folder / f"round-{report.rounds}", options.declaration, kills, chance, report, wanted)
        if not options.json:
            print(f"{report.kills} kills, {len(report.wrong)} wrong, {time.monotonic() - begun:.0f} s", flush=True)
    if options.json:
        print(json.dumps(report.as_dict() | {"seconds": round(time.monotonic() - begun, 1)}, indent=2))
    else:
        kinds = ", ".join(f"{count} in {kind}" for kind, count in sorted(report.killed.items()))
        print(
            f"{report.kills} kills ({kinds}) in {report.rounds} rounds; {report.finished} steps acknowledged; ", end=""
        )
        print(f"{report.restores} times back; {len(report.wrong)} wrong")
        print("\n".join(report.wrong))
    return 1 if report.wrong else 0


def unkilled(folder: Path, declaration: Path) -> str:
    """Do all steps in this process; return what the workspace holds then."""
    workspace = Workspace.create(folder, declaration)
    seed(workspace)
    with contextlib.redirect_stdout(io.StringIO()):
        work(workspace)
    text = workspace.canonical()
    workspace.close()
    return text


def _round(
    folder: Path, declaration: Path, kills: int, chance: random.Random, report: WorkspaceKills, wanted: str
) -> None:
    workspace = Workspace.create(folder, declaration)
    seed(workspace)
    workspace.close()
    running: list[tuple[subprocess.Popen[str], float, str]] = []
    killed = 0
    while killed < kills:
        while len(running) < _AT_ONCE:
            what = chance.choices(("work", "snapshot", "restore", "resume"), (8, 1, 1, 1))[0]
            running.append((_started(folder, what, chance), time.monotonic() + chance.uniform(*_LIVES), what))
        time.sleep(0.01)
        for each in list(running):
            process, deadline, what = each
            if process.poll() is None and time.monotonic() < deadline:
                continue
            running.remove(each)
            was_alive = process.poll() is None
            process.send_signal(signal.SIGKILL)
            output, errors = process.communicate()
            killed += was_alive
            report.kills += was_alive
            report.killed[what] += was_alive
            _heard(output, errors, "" if was_alive else what, report)
    for process, _, _ in running:
        process.kill()
        process.communicate()
    _end(folder, report)
    look(folder, report, wanted)


def _started(folder: Path, what: str, chance: random.Random) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", _WORKER, str(folder), what, str(chance.randrange(10**9))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _heard(output: str, errors: str, ended: str, report: WorkspaceKills) -> None:
    """Count what a process said; one that ended by itself must not have failed."""
    lines = output.splitlines()
    report.finished += sum(1 for line in lines if "/" in line)
    report.restores += ended in ("restore", "resume") and "ended" in lines
    if ended and "ended" not in lines:
        report.wrong.append(f"{ended} failed: {errors.strip().splitlines()[-1:]}")


def _end(folder: Path, report: WorkspaceKills) -> None:
    workers = [_started(folder, "work", random.Random(0)) for _ in range(_AT_ONCE)]
    for worker in workers:
        try:
            output, errors = worker.communicate(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            worker.kill()
            report.wrong.append(f"round {report.rounds}: a worker was stuck: {worker.communicate()[1].strip()[-200:]}")
        else:
            _heard(output, errors, "work", report)


def look(folder: Path, report: WorkspaceKills, wanted: str) -> None:
    """Compare what there is with what an unkilled run leaves, and look for what nobody may see."""
    here = f"round {report.rounds}"
    workspace = Workspace.open(folder)
    try:
        found = workspace.canonical()
        if found != wanted:
            pairs = zip(found.splitlines(), wanted.splitlines(), strict=False)
            different = next(((a, b) for a, b in pairs if a != b), ("", "another length"))
            report.wrong.append(f"{here}: {different[0][:150]} is not {different[1][:150]}")
        for snapshot in workspace.snapshots.all():
            report.wrong += [f"{here}: {snapshot.name}: {fault}" for fault in workspace.snapshots.verify(snapshot.name)]
        tables = list(workspace.declaration.tables)
    finally:
        workspace.close()
    with contextlib.closing(sqlite3.connect(folder / ".workspace" / "rows.db")) as database:
        said = database.execute("PRAGMA integrity_check").fetchone()[0]
        if said != "ok" or database.execute("PRAGMA foreign_key_check").fetchall():
            report.wrong.append(f"{here}: SQLite says {said}")
        for table in tables:
            report.wrong += [f"{here}: {table}: {fault}" for fault in _faults(database, table)]
        # A claim of before a restoring is void by its epoch; nobody has to give it back.
        held = database.execute(
            "SELECT name, attempt, epoch, expires_at FROM ws_leases WHERE owner IS NOT NULL AND name LIKE 'step:%' "
            "AND epoch = (SELECT CAST(meta.value AS INTEGER) FROM ws_meta AS meta WHERE meta.key = 'epoch')"
        )
        report.wrong += [f"{here}: a step that is done is still claimed: {each}" for each in held.fetchall()]
    leftovers = [path.name for path in (folder / ".workspace").rglob("*.part")]
    if leftovers:
        report.wrong.append(f"{here}: left over: {leftovers[:3]}")


def _faults(database: sqlite3.Connection, table: str) -> list[str]:
    """Return rows that are shown and should not be: of an attempt that is not the one that finished, or twice."""
    shown = f'FROM "{table}" AS r LEFT JOIN ws_steps AS s ON s.name = r.ws_step WHERE r.ws_state = 0'
    other = f"SELECT count(*) {shown} AND r.ws_step IS NOT NULL AND s.done_attempt IS NOT r.ws_attempt"
    pending = f'SELECT count(*) FROM "{table}" WHERE ws_state IN (1, 4)'  # noqa: S608 - a declared name
    wrong = []
    if database.execute(other).fetchone()[0]:
        wrong.append("rows of an attempt that was not finished are shown")
    if database.execute(pending).fetchone()[0]:
        wrong.append("rows wait for attempts, and every step is done")
    return wrong
