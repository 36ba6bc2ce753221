"""Measure the CPU time that memory adds to one run of a host.

    python -m benchmarks.host_start BUNDLE BASELINE [--runs 5] [--json] -- amplifier run --mode single "Hi."

`--bundle BUNDLE` or `--bundle BASELINE` is added to the command: one bundle with agent memory, and the same without it.
Environment and folder are those of the host, so that its home and its model are the caller's choice. The first run of
each prepares the bundle and is not counted. User and system time of all child processes count.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from statistics import median

from benchmarks.harness import build_parser, print_report


def measure_run(command: list[str], bundle: str) -> float:
    """Return the CPU seconds of one run.

    Args:
        command: Command of the host, without its bundle.
        bundle: Address of the bundle.

    Raises:
        CalledProcessError: The run failed, or died of a signal three times.
    """
    for is_last in (False, False, True):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run([*command, "--bundle", bundle], check=False, capture_output=True, stdin=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        # On a busy machine the host aborts at its exit in one of ten runs, with and without memory.
        if run.returncode >= 0 or is_last:
            run.check_returncode()
            break
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(command: list[str], bundles: tuple[str, str], runs: int) -> dict[str, float]:
    """Return the median CPU seconds with and without memory, and their difference."""
    seconds = [[measure_run(command, bundle) for bundle in bundles] for _ in range(runs + 1)][1:]
    with_memory, without = (median(column) for column in zip(*seconds, strict=True))
    return {"with": with_memory, "without": without, "added": with_memory - without}


def main() -> int:
    """Measure and print."""
    parser = build_parser("host_start", __doc__, "--json")
    parser.add_argument("bundles", nargs=2, metavar="BUNDLE", help="with memory, and without")
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each")
    own, command = sys.argv[1:], list[str]()
    if "--" in own:
        own, command = own[: own.index("--")], own[own.index("--") + 1 :]
    options = parser.parse_args(own)
    if not command:
        parser.error("name the command of the host after --")
    print_report(measure(command, tuple(options.bundles), options.runs), as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
