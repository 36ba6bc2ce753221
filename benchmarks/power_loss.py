"""Power cuts: after every step of what people and programs do, and a look at what the real product makes of the rest.

Records each scenario of `tests/power/scenarios.py`, replays it on the disk model of `tests/power/disk.py`, cuts the
power after every step, and opens what is left. Nothing that was acknowledged may be missing.

    python -m benchmarks.power_loss --cuts 5000 --seed 1
    python -m benchmarks.power_loss --cuts 1000 --sabotage no_file_sync    # must find losses

Ends with 1 when anything was lost or acknowledged too early, with 0 when nothing was; with `--sabotage` the other way.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import build_parser
from tests.power.checker import cut_power, gaps, record, syncs_per_ack
from tests.power.deaths import AFTER_A_DEATH
from tests.power.failing_disk import REFUSED
from tests.power.sabotage import SABOTAGES, replace
from tests.power.scenarios import ALONE, moved
from tests.power.tracing import reason_not_to, trace

if TYPE_CHECKING:
    import argparse

    from tests.power.events import Event
    from tests.power.scenarios import Scenario

_COLUMNS = ("scenario", "steps", "acknowledged", "syncs a store", "too early", "cuts", "different", "lost", "seconds")

_OF_REFUSED = "trusts_a_second_sync"


def main() -> None:
    """Run what the command line asks for."""
    options = _parser().parse_args()
    if options.traced and (reason := reason_not_to()) is not None:
        sys.exit(f"System calls cannot be traced: {reason}.")
    if options.sabotage:
        SABOTAGES[options.sabotage](replace)
    scenarios = [*ALONE, *AFTER_A_DEATH, *REFUSED]
    if options.traced:  # the engine writes through memory maps, and a real disk does not refuse
        scenarios = [scenario for scenario in scenarios if scenario is not moved and scenario not in REFUSED]
    if options.sabotage and not options.only:  # what does not sync cannot be refused, but for one that syncs twice
        scenarios = [scenario for scenario in scenarios if (scenario in REFUSED) == (options.sabotage == _OF_REFUSED)]
    scenarios = [scenario for scenario in scenarios if not options.only or scenario.__name__ in options.only]
    rows: list[dict[str, Any]] = []
    failures: list[str] = []
    if not options.json:
        print("".join(name.rjust(38 if name == "scenario" else 14) for name in _COLUMNS))
    for scenario in scenarios:
        row, found = _run(scenario, -(-options.cuts // len(scenarios)), options)
        rows.append(row)
        failures += found
        if not options.json:
            print("".join(str(row[name]).rjust(38 if name == "scenario" else 14) for name in _COLUMNS), flush=True)
    total = {name: sum(row[name] for row in rows) for name in ("too early", "cuts", "different", "lost")}
    if options.json:
        print(json.dumps({"seed": options.seed, "scenarios": rows, **total, "failures": failures}, indent=2))
    else:
        print(f"\n{total['cuts']} cuts, {total['different']} different, {total['lost']} lost something", end="")
        print(f"; {total['too early']} acknowledged too early (seed {options.seed})")
        for failure in failures[: options.show]:
            print(f"  {failure}")
    sys.exit(bool(failures) != bool(options.sabotage))


def _run(scenario: Scenario, cuts: int, options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        events = _recorded(scenario, Path(folder), options)
        early = [gap for gap in gaps(events) if not gap.startswith("refused")]
        report = cut_power(
            scenario.__name__, events, Path(folder), seed=options.seed, per_step=-(-cuts // len(events)), most=cuts
        )
    syncs = sorted(set(syncs_per_ack(events, "store")))
    row = {
        "scenario": scenario.__name__,
        "steps": len(events),
        "acknowledged": sum(event.do == "ack" for event in events),
        "syncs a store": "/".join(map(str, syncs)) or "-",
        "too early": len(early),
        "cuts": report.cuts,
        "different": report.different,
        "lost": len(report.failures),
        "seconds": round(time.monotonic() - started, 1),
    }
    return row, [*early, *report.failures]


def _recorded(scenario: Scenario, folder: Path, options: argparse.Namespace) -> list[Event]:
    base = folder / "base"
    base.mkdir()
    if options.traced:
        return trace(scenario.__name__, base, folder / "trace", *filter(None, [options.sabotage]))
    return record(scenario, base)


def _parser() -> argparse.ArgumentParser:
    parser = build_parser("power_loss", __doc__, "--seed", "--json")
    parser.add_argument("--cuts", type=int, default=1000, help="power cuts, spread over the scenarios")
    parser.add_argument("--traced", action="store_true", help="record with strace instead of standing in for os.*")
    parser.add_argument("--sabotage", choices=sorted(SABOTAGES), help="leave out one sync; this must be found out")
    parser.add_argument("--only", nargs="+", metavar="SCENARIO", help="these scenarios")
    parser.add_argument("--show", type=int, default=10, help="failures to print")
    return parser


if __name__ == "__main__":
    main()
