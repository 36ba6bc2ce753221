"""The commands: generate, run, compare."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import scripts.mutants
from scripts.mutants.changing import find, survey
from scripts.mutants.judging import Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scripts.mutants.changing import Record

IGNORED: Final = ("tests/unit/engines",)  # minutes


def find_tests(tree: Path, paths: Sequence[str]) -> list[str]:
    """Return for each source the deepest folder below `tests/unit` that mirrors it.

    Raises:
        SystemExit: A source has no such folder.
    """
    folders: set[str] = set()
    for path in paths:
        source = Path(path)
        parts = source.with_suffix("").parts[source.parts.index("agent_memory") + 1 :]
        mirrors = (Path("tests", "unit", *parts[:length]) for length in range(len(parts), 0, -1))
        folder = next((mirror for mirror in mirrors if (tree / mirror).is_dir()), None)
        if folder is None:
            raise SystemExit(f"No folder of tests/unit mirrors {path}. Name its tests with --tests.")
        folders.add(folder.as_posix())
    return sorted(folders)


def run(options: argparse.Namespace) -> int:
    """Judge the listed mutants, and what stands in for those that are gone; print one line each."""
    tree = options.tree.resolve()
    listed = json.loads(options.list.read_text(encoding="utf-8"))
    entries, killers = listed["mutants"], {}
    if options.only_killed_in:
        base = json.loads(options.only_killed_in.read_text(encoding="utf-8"))["mutants"]
        killers = {_key(result["was"]): result["by"] for result in base if result["verdict"] == "killed"}
        entries.sort(key=lambda entry: _key(entry) not in killers)
    wanted = len(killers) if options.only_killed_in else len(entries)
    paths = options.paths or listed["paths"]
    tests = options.tests or find_tests(tree, paths)
    chosen = find(entries, survey(tree, paths))[:wanted]  # no survivor stands in for another
    results: list[Record] = []
    with tempfile.TemporaryDirectory(prefix="mut-") as scratch:
        runner = Runner(tree, [*tests, *(f"--ignore={path}" for path in options.ignore)], Path(scratch))
        for test in runner.measure():
            print(f"fails without a mutant, so it judges none: {test}", flush=True)
        for number, (entry, mutant, same) in enumerate(chosen, 1):
            result = runner.judge(mutant, killers.get(_key(entry), "")) if mutant else {"verdict": "none left"}
            results.append({**result, "was": entry, "same": same})
            print(f"{number}/{len(chosen)} {'' if same else 'instead of a gone one '}{_line(results[-1])}", flush=True)
            options.out.write_text(json.dumps({"mutants": results}, indent=1), encoding="utf-8")
    print(Counter(result["verdict"] for result in results))
    return 0


def compare(options: argparse.Namespace) -> int:
    """Print what became of the mutants that were killed before; return 1 if one of them survives now."""
    before, now = (json.loads(path.read_text(encoding="utf-8"))["mutants"] for path in (options.base, options.now))
    killed = {_key(result["was"]) for result in before if result["verdict"] == "killed"}
    later = [result for result in now if _key(result["was"]) in killed]
    for same, name in ((True, "found again"), (False, "gone; instead the nearest of the kind")):
        print(f"{name}: {dict(Counter(result['verdict'] for result in later if result['same'] == same))}")
    print(f"killed before and not run now: {len(killed) - len(later)}")
    lost = [result for result in later if result["verdict"] == "survived"]
    for result in lost:
        print(f"\n{'' if result['same'] else 'instead of a gone one: '}{_line(result)}\n{result['diff']}")
    return int(any(result["same"] for result in lost))


def _key(entry: Record) -> tuple[Any, ...]:
    return tuple(entry[name] for name in ("kind", "text", "changed", "function", "path", "ordinal"))


def _line(result: Record) -> str:
    if "kind" not in result:
        return f"{result['verdict']}: {result['was']['kind']} in {result['was']['function']}"
    place = f"{result['path']}:{result['line']} {result['function']}"
    return (
        f"{result['verdict']}: {result['kind']}, {place}, {result['tests']} tests, {result['seconds']} s {result['by']}"
    )


def generate(options: argparse.Namespace) -> int:
    """Print a list of mutants, each as likely as any other to be in it."""
    mutants = survey(options.tree.resolve(), options.paths)
    chosen = random.Random(options.seed).sample(mutants, min(options.count, len(mutants)))  # noqa: S311 - repeatable
    print(json.dumps({"paths": options.paths, "mutants": [mutant.record for mutant in chosen]}, indent=1))
    return 0


def _command(commands: Any, work: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(work.__name__, description=work.__doc__)
    command.set_defaults(work=work)
    return command


def main(arguments: Sequence[str]) -> int:
    """Do what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.mutants",
        description=scripts.mutants.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    making, running, comparing = (_command(commands, work) for work in (generate, run, compare))
    for command in (making, running):
        command.add_argument("--tree", type=Path, required=True, help="a checkout; run changes it for a while")
    making.add_argument("--seed", type=int, default=1)
    making.add_argument("--count", type=int, default=200)
    making.add_argument("paths", nargs="+", metavar="PATH", help="a file or folder of the checkout")
    running.add_argument("--list", type=Path, required=True, help="what generate printed")
    running.add_argument("--only-killed-in", type=Path, metavar="BASE", help="leave out what survived there")
    running.add_argument("--out", type=Path, required=True)
    running.add_argument(
        "--tests", nargs="+", metavar="PATH", help="default: the folders of tests/unit that mirror the sources"
    )
    running.add_argument("--ignore", nargs="*", default=IGNORED, metavar="PATH", help="tests that are not run")
    running.add_argument("paths", nargs="*", metavar="PATH", help="where to look; as for generate if none is given")
    comparing.add_argument("base", type=Path)
    comparing.add_argument("now", type=Path)
    options = parser.parse_args(arguments)
    return int(options.work(options))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
