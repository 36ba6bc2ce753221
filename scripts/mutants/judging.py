"""Runs the tests that execute a mutant."""

from __future__ import annotations

import compileall
import contextlib
import importlib
import json
import os
import resource
import select
import signal
import sys
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import coverage
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from scripts.mutants.changing import Mutant, Record

_SECONDS: Final = 60.0
_SECONDS_OF_TESTS: Final = (
    20.0  # what all tests of one mutant may take by themselves, so that no survivor runs a minute
)
_FEW: Final = 5
_BYTES: Final = 4 << 30
_PRELOADED: Final = ("hypothesis", "pydantic", "yaml", "structlog", "asyncio", "email")


class _TestWatch:
    """Has chosen tests run in an order, and writes down how long each took and which failed."""

    def __init__(self, notes: Path, order: Sequence[str] = ()) -> None:
        self._notes, self._order = notes, {name: number for number, name in enumerate(order)}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._failed: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._order:
            items[:] = sorted((i for i in items if i.nodeid in self._order), key=lambda item: self._order[item.nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._failed += [report.nodeid] if report.failed else []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        self._failed += [report.nodeid] if report.failed else []

    def pytest_sessionfinish(self) -> None:
        self._notes.write_text(json.dumps({"seconds": self._seconds, "failed": self._failed}), encoding="utf-8")


class Runner:
    """Runs tests of one checkout in processes forked from this one, which has imported what takes long."""

    def __init__(self, tree: Path, tests: Sequence[str], scratch: Path) -> None:
        self._tree, self._tests, self._scratch = tree, tests, scratch
        self._seconds: dict[str, float] = {}
        self._touching: defaultdict[str, defaultdict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        modules = [tree / "demo", *(tree / "modules").iterdir()]
        os.environ["PYTHONPATH"] = os.pathsep.join(map(str, [tree / "src", tree, *modules]))  # for what tests start
        os.environ["COVERAGE_FILE"] = str(scratch / "coverage")
        for folder in (tree / "src", tree / "tests"):
            compileall.compile_dir(folder, quiet=1)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # a mutant of the same size and second would pass for another
        sys.dont_write_bytecode = True
        for name in _PRELOADED:
            importlib.import_module(name)

    def measure(self) -> list[str]:
        """Run all tests once, noting times and which lines each executes; return those that fail, which judge nothing.

        Raises:
            SystemExit: They did not run to the end.
        """
        _, notes = self._pytest(["--cov", "--cov-context=test", "--cov-report=", *self._tests], 1800.0)
        if not notes:
            raise SystemExit("The tests did not run to the end without a mutant.")
        self._seconds = {test: took for test, took in notes["seconds"].items() if test not in notes["failed"]}
        data = coverage.CoverageData(os.environ["COVERAGE_FILE"])
        data.read()
        for file in data.measured_files():
            touching = self._touching[os.path.relpath(file, self._tree)]
            for line, contexts in data.contexts_by_lineno(file).items():
                touching[line] = {context.rpartition("|")[0] for context in contexts} & self._seconds.keys()
        return list(notes["failed"])

    def judge(self, mutant: Mutant, suspect: str = "") -> Record:
        """Return the mutant's verdict ("killed", "survived"), by which test, of how many, and the seconds taken.

        A test with the name of the `suspect` is tried by itself before all, wherever its file is by now.
        """
        begun = time.monotonic()
        tests = self._tests_of(mutant)
        named = [test for test in self._seconds if test.partition("::")[2] == suspect.partition("::")[2]]
        file = self._tree / mutant.path
        before, times = file.read_bytes(), file.stat()
        try:
            file.write_text(mutant.source(), encoding="utf-8")
            by = (named and self._killer(named)) or (tests and self._killer(tests))
        finally:
            file.write_bytes(before)
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        verdict = {"verdict": "killed" if by else "survived", "by": by or "", "tests": len(tests)}
        return {**mutant.record, **verdict, "seconds": round(time.monotonic() - begun, 1), "diff": mutant.diff()}

    def _killer(self, tests: Sequence[str]) -> str:
        """Run these in their order to the first that fails; return it, or nothing."""
        status, notes = self._pytest(["-x", *sorted({test.partition("::")[0] for test in tests})], _SECONDS, tests)
        if status is None:
            return "a minute without an end"
        return str((notes.get("failed") or [f"exit status {status}"])[0]) if status else ""

    def _tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute the mutant, quickest first.

        If they are few, the others of its file follow: what a module or a cache does once is seen in one test only.
        """
        touching = self._touching[mutant.path]
        direct = set().union(*(touching[line] for line in mutant.lines))
        others = set().union(*touching.values()) if len(direct) < _FEW else set()
        chosen, total = [], 0.0
        for test in sorted(direct | others, key=lambda test: (test not in direct, self._seconds[test], test)):
            total += self._seconds[test]
            if total < _SECONDS_OF_TESTS:
                chosen.append(test)
        return chosen

    def _pytest(self, words: list[str], seconds: float, order: Sequence[str] = ()) -> tuple[int | None, Record]:
        notes = self._scratch / "notes"
        notes.unlink(missing_ok=True)
        own = ["-q", "--assert=plain", "--hypothesis-seed=0", f"--basetemp={self._scratch / 'tests'}", "-m", "not deep"]
        own += [word for name in ("randomly", "cacheprovider") for word in ("-p", f"no:{name}")]

        def work() -> int:
            os.chdir(self._tree)
            return int(pytest.main([*own, *words], plugins=[_TestWatch(notes, order)]))

        status = _in_child(work, seconds)
        return status, json.loads(notes.read_text(encoding="utf-8")) if notes.exists() else {}


def _in_child(work: Callable[[], int], seconds: float) -> int | None:
    """Do `work` in a process of its own without output; return its exit status, None if it had to be stopped."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 70
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))  # a loop that never ends may fill a list
            null = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(null, stream)
            status = work()
        finally:
            os._exit(status)
    watch = os.pidfd_open(child)
    ended = bool(select.select([watch], [], [], seconds)[0])
    os.close(watch)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # and what it left running
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status if ended else None
