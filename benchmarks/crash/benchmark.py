"""Kill writing processes and check that nothing acknowledged is lost.

    python -m benchmarks.crash [--kills 500] [--seed 0] [--operations store,update]

Each kill: a process does one of twelve operations as a user would (service or command line), tells through a pipe what
it has been told, and dies by SIGKILL at a moment chosen by the seed:

- `call`: right before, right after or half-way through the N-th call that changes a file,
- `time`: after a random delay; now and then it is a child of it that dies, the index's holder or builder,
- `exact` (with `--exact`, needs strace): at the N-th such system call of whichever thread or child comes to it first,
  those of SQLite and the vector engine included.

Then, now and then, whoever reopens is killed, too. Then a fresh process opens, compares, searches, goes on working and
lists the folder (`recovery_check`). Ends with 1 if anything was lost, could not be opened, is half done or lies about.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.embeddings import PROVIDERS, Provider
from agent_memory.storage import folder_of
from agent_memory.store.shards import Shards
from benchmarks.crash.model import AcknowledgedState, HeardMessages
from benchmarks.crash.operations import AGENT, EMBEDDER, MOVES, OPERATIONS, MemoryVictim, VictimJob, preload
from benchmarks.crash.process import SITE, ForkedProcess, adopt_orphans
from benchmarks.crash.recovery_check import RecoveryCase, examine, recover
from benchmarks.crash.sabotage import SABOTAGES, sabotage
from benchmarks.harness import build_parser, print_report, render_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.crash.process import MessagePipe

COLUMNS: Final = ("lost", "reopen", "half", "leftovers")
_PATIENCE: Final = 120.0
_MANY: Final = 300
"""Memories; a folder with more is begun anew, so that late kills take as long as early ones."""
_ON_VECTORS: Final = 0.15
"""Share of the other operations that are done on a memory with an index."""
_ALSO_RECOVERY: Final = 0.3
_A_CHILD: Final = 0.3
_CALLS: Final = "openat,write,pwrite64,fsync,fdatasync,ftruncate,rename,renameat2,unlink,unlinkat,mkdir,rmdir"


@dataclass(slots=True)
class OperationFigures:
    """Figures of one operation."""

    kills: int = 0
    inside: int = 0
    before: int = 0
    after: int = 0
    recovery_kills: int = 0
    lost: int = 0
    reopen: int = 0
    half: int = 0
    leftovers: int = 0


@dataclass(slots=True)
class CampaignFolder:
    """An agent's folder with what must be in it."""

    root: Path
    expected: AcknowledgedState = field(default_factory=AcknowledgedState)


class CrashCampaign:
    """All kills of one run.

    Args:
        scratch: An empty folder.
        seed: Of all choices.
        end_orphans: Ends what killed processes have started; called before a folder is removed.
        exact: Also kill at system calls, through strace.
        spoilt: Name of a sabotage, for a look whether the checks notice.
    """

    def __init__(
        self,
        scratch: Path,
        seed: int,
        end_orphans: Callable[[], None],
        *,
        exact: bool = False,
        spoilt: str = "",
    ) -> None:
        self.rows: dict[str, OperationFigures] = {}
        self.windows: Counter[str] = Counter()
        self.problems: list[str] = []
        self._scratch = scratch
        self._choose = random.Random(seed)
        self._end_orphans = end_orphans
        self._exact = exact
        self._spoilt = spoilt
        self._places: dict[tuple[str, str], CampaignFolder] = {}
        self._begun = 0
        self._calls: dict[str, int] = {}
        self._seconds: dict[str, float] = {}
        self._templates: dict[str, CampaignFolder] = {}
        (scratch / "site").mkdir(parents=True)
        (scratch / "site" / "sitecustomize.py").write_text(SITE)

    # -- one kill -----------------------------------------------------------------------------------------------------

    def kill(self, do: str) -> None:
        """Start an operation, kill its process and check what remains."""
        backend = self._backend_for(do)
        if do not in self._calls:
            self._calibrate(do, backend)
        place, row = self._place(do, backend), self.rows.setdefault(do, OperationFigures())
        how = self._choose.choice(("call", "call", "time", "exact") if self._exact else ("call", "call", "time"))
        heard = {"call": self._kill_at_call, "time": self._kill_at_time, "exact": self._kill_exactly}[how](do, place)
        row.kills += 1
        of_child = heard.failed != 0  # it lived to tell that the process that worked for it had died
        row.inside += heard.under_way or of_child
        row.after += heard.working and not heard.under_way
        row.before += not heard.working and not of_child
        self.windows[f"{do}: {heard.struck or how}"] += 1
        if self._choose.random() < _ALSO_RECOVERY:
            row.recovery_kills += self._kill_recovery(place)
        self._judge(do, place, heard, row)

    def _kill_at_call(self, do: str, place: CampaignFolder) -> HeardMessages:
        in_builder = do in {"migration", "reindex"} and self._choose.random() < 0.6
        most = self._calls["build" if in_builder else do]
        skip = 0 if do in MOVES else self._choose.randint(0, 3)
        job = self._job(
            do,
            place,
            at=self._choose.randint(1, most),
            how=self._choose.choice(("before", "after", "torn")),
            skip=skip,
            rounds=skip + 4,
            in_builder=in_builder,
        )
        heard = self._run(job, place, lambda _child, _heard: None)
        if in_builder and heard.failed:
            heard.struck = f"{job.how} in the builder"
        return heard

    def _kill_at_time(self, do: str, place: CampaignFolder) -> HeardMessages:
        moment = self._choose.random() * 1.1 * self._seconds[do]
        skip = 0 if do in MOVES else self._choose.randint(0, 2)
        a_child = self._choose.random() < _A_CHILD

        def strike(child: ForkedProcess, heard: HeardMessages) -> None:
            while heard.began <= skip and (message := child.hear(_PATIENCE)) is not None:
                heard.take(message, place.expected)
            time.sleep(moment)
            children = child.children() if a_child else []
            for pid in children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if children:
                time.sleep(0.2)
                heard.struck = "a child"
            child.kill()

        return self._run(self._job(do, place), place, strike)

    def _kill_exactly(self, do: str, place: CampaignFolder) -> HeardMessages:
        number = self._choose.randint(1, 2 * self._calls[do])

        def strike(child: ForkedProcess, heard: HeardMessages) -> None:
            child.hear(_PATIENCE)
            trace = [f"trace={_CALLS}", f"inject={_CALLS}:signal=KILL:when={number}"]
            command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", trace[0], "-e", trace[1], "-p", str(child.pid)]
            tracer = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            try:
                deadline = time.monotonic() + 20 + 5 * self._seconds[do]
                while child.is_alive and time.monotonic() < deadline:
                    if (message := child.hear(0.2)) is not None:
                        heard.take(message, place.expected)
                child.kill()
            finally:
                tracer.kill()
                tracer.wait()

        return self._run(self._job(do, place, attached=True), place, strike)

    def _run(self, job: VictimJob, place: CampaignFolder, strike: Any) -> HeardMessages:
        heard, expected = HeardMessages(), place.expected
        child = self._child("victim", _work, job, expected, self._spoilt)
        try:
            strike(child, heard)
            for message in child.listen(_PATIENCE):
                heard.take(message, expected)
        finally:
            child.close()
        if heard.crashed or (heard.failed and not (job.in_builder or heard.struck)):
            self.problems.append(f"{job.do}: the process failed by itself: {heard.crashed or heard.failed}")
            self.rows[job.do].reopen += 1
        return heard

    def _kill_recovery(self, place: CampaignFolder) -> int:
        at, how = self._choose.randint(1, 40), self._choose.choice(("before", "after", "torn"))
        child = self._child("recovery", recover, place.root, at, how)
        child.listen(_PATIENCE)
        code = child.wait()
        child.close()
        return int(code == -signal.SIGKILL)

    def _judge(self, do: str, place: CampaignFolder, heard: HeardMessages, row: OperationFigures) -> None:
        case = RecoveryCase(
            place.root,
            heard.pending,
            tuple(heard.damaged),
            heard.file,
            tuple(heard.every),
            seed=self._choose.getrandbits(32),
            rerun=self._choose.random() < 0.5,
        )
        child = self._child("check", examine, case, place.expected)
        message = child.hear(2 * _PATIENCE)
        child.close()
        if message is None or "crashed" in message:
            message = {"reopen": [(message or {}).get("crashed", "it hangs")]}
        place.expected.learn(message.get("now", {}))
        for column in COLUMNS:
            faults = message.get(column, [])
            setattr(row, column, getattr(row, column) + len(faults))
            self.problems += [f"{do} ({heard.struck or 'killed'}): {column}: {what}" for what in faults]
        if any(message.get(column) for column in COLUMNS):
            self._forget_places(place)  # what is wrong now must not be counted again

    # -- places -------------------------------------------------------------------------------------------------------

    def _job(self, do: str, place: CampaignFolder, **options: Any) -> VictimJob:
        return VictimJob(do, place.root, self._choose.getrandbits(32), **options)

    def _child(self, name: str, function: Any, *arguments: object) -> ForkedProcess:
        return ForkedProcess(self._scratch / f"{name}.log", function, *arguments)

    def _backend_for(self, do: str) -> str:
        if do in {"rollback", "reindex"}:
            return "vector"
        if do in {"migration", "build", "seal"}:
            return "file"
        return "vector" if self._choose.random() < _ON_VECTORS else "file"

    def _place(self, do: str, backend: str) -> CampaignFolder:
        """Return the folder of an operation, new if full or moved."""
        place = self._places.get((do, backend))
        if place is not None:
            is_as = Shards(folder_of(AGENT, place.root)).active()[0]
            if is_as == backend and len(place.expected.memories) < _MANY:
                return place
            self._forget_places(place)
        template = self._template(backend)
        # A name of its own: of the last one's processes some may not have ended yet, and write into their folder.
        self._begun += 1
        root = self._scratch / f"{do}-{backend}-{self._begun}" / "memory"
        shutil.copytree(template.root, root)
        shutil.copytree(self._scratch / "site", root.parent / "site")
        place = CampaignFolder(
            root, AcknowledgedState(dict(template.expected.memories), dict(template.expected.forgotten))
        )
        self._places[do, backend] = place
        return place

    def _forget_places(self, place: CampaignFolder) -> None:
        self._places = {key: active for key, active in self._places.items() if active is not place}
        self._end_orphans()
        shutil.rmtree(place.root.parent)

    def _template(self, backend: str) -> CampaignFolder:
        """Return a folder with fifteen memories, some of them replaced."""
        if backend not in self._templates:
            place = CampaignFolder(self._scratch / f"template-{backend}" / "memory")
            if backend == "vector":
                shutil.copytree(self._template("file").root, place.root)
                place.expected = self._template("file").expected
                jobs = [VictimJob("migration", place.root, 0)]
            else:
                jobs = [VictimJob("store", place.root, 1, rounds=15)]
            for job in jobs:
                heard = HeardMessages()
                for message in self._finish(job, place):
                    heard.take(message, place.expected)
            self._templates[backend] = place
        return self._templates[backend]

    def _calibrate(self, do: str, backend: str) -> None:
        """Measure calls and time of an operation without a kill."""
        rounds = 1 if do in MOVES else 4
        for operation in [do] if do not in {"migration", "reindex"} else [do, "build"]:
            place = self._place(operation, self._backend_for(operation) if operation in MOVES else backend)
            heard, most, longest, began = HeardMessages(), 1, 0.01, time.monotonic()
            for message in self._finish(self._job(operation, place, rounds=rounds), place):
                heard.take(message, place.expected)
                began = time.monotonic() if "begin" in message else began
                if "settled" in message:
                    most, longest = max(most, heard.calls), max(longest, time.monotonic() - began)
            self._calls[operation], self._seconds[operation] = most, longest
            if operation in MOVES:
                self._forget_places(place)

    def _finish(self, job: VictimJob, place: CampaignFolder) -> list[dict[str, Any]]:
        child = self._child("victim", _work, job, place.expected, "")
        messages = []
        while (message := child.hear(_PATIENCE)) is not None:
            messages.append({**message, "heard": time.monotonic()})
        code = child.wait()
        child.close()
        if code != 0:
            raise RuntimeError(f"{job.do} fails without being killed: {messages[-1:]}")
        return messages


def _work(say: MessagePipe, job: VictimJob, expected: AcknowledgedState, spoilt: str) -> None:
    if spoilt:
        sabotage(spoilt)
    MemoryVictim(say, job, expected).run()


def run(kills: int, seed: int, operations: list[str], *, until_found: bool = False, **options: Any) -> dict[str, Any]:
    """Kill processes, operation by operation; return the report.

    For the options see `CrashCampaign`.
    """
    preload()
    PROVIDERS["local"] = Provider(make=lambda _: EMBEDDER)  # a model would only take longer to be killed
    with tempfile.TemporaryDirectory(prefix="crash-") as scratch, adopt_orphans() as end_orphans:
        campaign = CrashCampaign(Path(scratch), seed, end_orphans, **options)
        for number in range(kills):
            campaign.kill(operations[number % len(operations)])
            if until_found and campaign.problems:
                break
        total = OperationFigures()
        for row in campaign.rows.values():
            for name, value in asdict(row).items():
                setattr(total, name, getattr(total, name) + value)
        return {
            "seed": seed,
            "operations": {do: asdict(row) for do, row in campaign.rows.items()},
            "total": asdict(total),
            "windows": dict(sorted(campaign.windows.items())),
            "problems": campaign.problems,
            "passed": not campaign.problems,
        }


def main() -> None:
    """Kill, judge, print; exit with 1 if anything was found."""
    parser = build_parser("crash", __doc__, "--kills", "--seed", "--json")
    parser.add_argument("--operations", type=lambda text: text.split(","), help=",".join(OPERATIONS))
    parser.add_argument("--exact", action="store_true", help="also kill at system calls; needs strace")
    parser.add_argument("--sabotage", choices=sorted(SABOTAGES), default="", help="spoil the product: this must fail")
    parser.add_argument("--until-found", action="store_true", help="stop at the first finding")
    args = parser.parse_args()
    if args.exact and shutil.which("strace") is None:
        parser.error("--exact needs strace")
    operations = args.operations or list(OPERATIONS)
    if unknown := set(operations) - set(OPERATIONS):
        parser.error(f"no such operation: {', '.join(sorted(unknown))}")
    report = run(
        args.kills,
        args.seed,
        operations,
        exact=args.exact,
        spoilt=args.sabotage,
        until_found=args.until_found,
    )
    rows = {**report["operations"], "all": report["total"]}
    end = report["problems"] or ["nothing lost, nothing half done"]
    print_report(report, [*render_rows("operation", rows, 14), "", *end], as_json=args.json)
    sys.exit(0 if report["passed"] else 1)
