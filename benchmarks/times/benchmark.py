"""Measure times read from texts: right, wrong and missing ones.

    python -m benchmarks.times --specs FILE [--language en] [--part tune|judge] [--rival PYTHON] [--json]

FILE is a `DateTimeModel.json` of microsoft/Recognizers-Text, `Specs/DateTime/<Language>`. Counted are its results of
the types date, daterange, datetime and datetimerange that have a day in their resolution ("not resolved" has none), of
the cases that are not marked as unsupported in Python. Cases whose input has a SHA-256 that ends in an even hexadecimal
digit are for tuning, the others for judging.

A result is right where a mention overlaps its words and both its days are those of one of the listed values: of a date
or datetime that day; of a datetimerange the days of its first and last second; of a daterange its start and its end, as
the specification understands them. It ends a range of two named ends on the first day of the second ("May to July": 1
July), has "after" a day begin and "until" or "by" a day end on that day, and lets what is not bounded have no day. What
is compared is therefore `TimeMention.named` by `TimeMention.bound`, see `_by_spec`, not `first_day` and `end_day`,
which tell what holds. A result may be right only by a value that the specification lists: the past or the coming day
where it lists both. Mentions that overlap no result of any type are counted as extra, beside it.

With `--rival`, dateparser's `search_dates` in another environment's Python is measured on the same results: right where
a date it finds overlaps the words and is the first day of a value that is one day, or the first day of a range.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent_memory.times import TimeMention, times_in
from benchmarks.harness import build_parser, get_percentile, get_share, print_report, resample

_TYPES: Final = ("date", "daterange", "datetime", "datetimerange")
_DRAWS: Final = 1_000
_REFERENCE: Final = "2016-11-07T00:00:00"
_RIVAL: Final = """
import json, sys
from datetime import datetime
from dateparser.search import search_dates
for line in sys.stdin:
    text, said, language = json.loads(line)
    settings = {"RELATIVE_BASE": datetime.fromisoformat(said)}
    try:
        found = search_dates(text, languages=[language], settings=settings) or []
    except Exception:
        found = []
    rows, at = [], 0
    for words, moment in found:
        at = max(text.find(words, at), 0)
        rows.append((at, at + len(words), moment.date().isoformat()))
    print(json.dumps(rows))
"""

Span = tuple[date | None, date | None]


class WantedTime(NamedTuple):
    """Expected result: its place, possible days, and time of day."""

    start: int
    end: int
    values: list[Span]
    has_clock: bool


class TimeCase(NamedTuple):
    """Text of the specification with its moment and expected times."""

    text: str
    said: datetime
    wanted: list[WantedTime]
    taken: list[tuple[int, int]]


def main() -> None:
    """Measure and print."""
    parser = build_parser("times", __doc__, "--json")
    parser.add_argument("--specs", type=Path, help="a DateTimeModel.json of microsoft/Recognizers-Text")
    parser.add_argument("--language", default="en", help="of the file, such as de")
    parser.add_argument("--part", choices=("tune", "judge"), default="judge")
    parser.add_argument("--rival", type=Path, help="the Python of an environment with dateparser")
    args = parser.parse_args()
    rows: dict[str, Any] = {}
    if args.specs is not None:
        cases = read(args.specs, args.part)
        rows["ours"] = measure(cases, args.language)
        if args.rival is not None:
            rows["dateparser"] = rival(cases, args.language, args.rival)
    print_report(rows, as_json=args.json)


def read(path: Path, part: str) -> list[TimeCase]:
    """Return the cases of a part of a specification.

    Raises:
        OSError, ValueError: It is not there, or no such file.
    """
    cases = []
    for each in json.loads(path.read_text(encoding="utf-8-sig")):
        is_even = int(hashlib.sha256(each["Input"].encode()).hexdigest()[-1], 16) % 2 == 0
        if "python" in each.get("NotSupported", "").lower() or is_even != (part == "tune"):
            continue
        said = datetime.fromisoformat(each.get("Context", {}).get("ReferenceDateTime", _REFERENCE))
        spans = [_where(each["Input"], result) for result in each["Results"]]
        wanted = [
            WantedTime(*span, values, "time" in result["TypeName"])
            for span, result in zip(spans, each["Results"], strict=True)
            if result["TypeName"].rpartition(".")[2] in _TYPES and (values := _values(result))
        ]
        cases.append(TimeCase(each["Input"], said.replace(tzinfo=UTC), wanted, spans))
    return cases


def _where(text: str, result: dict[str, Any]) -> tuple[int, int]:
    if "Start" in result:
        length = result.get("Length") or result["End"] - result["Start"] + 1
        return result["Start"], result["Start"] + length
    at = max(text.lower().find(result["Text"].lower()), 0)
    return at, at + len(result["Text"])


def _values(result: dict[str, Any]) -> list[Span]:
    found: list[Span] = []
    for value in (result.get("Resolution") or {}).get("values") or []:
        kind = value["type"]
        if kind in {"date", "datetime"} and value.get("value", "")[:1].isdigit():
            day = date.fromisoformat(value["value"][:10])
            found.append((day, day + timedelta(days=1)))
        elif kind in {"daterange", "datetimerange"} and ("start" in value or "end" in value):
            found.append(_range(value, kind))
    return found


def _range(value: dict[str, str], kind: str) -> Span:
    start = value.get("start", "")[:10]
    end = value.get("end", "")
    first = date.fromisoformat(start) if start else None
    if not end:
        return first, None
    if kind == "daterange" or not start:
        return first, date.fromisoformat(end[:10])
    last = datetime.fromisoformat(end) - timedelta(seconds=1)
    return first, last.date() + timedelta(days=1)


def measure(cases: list[TimeCase], language: str) -> dict[str, Any]:
    """Return right results with interval, wrong and extra ones, and precision."""
    hits: list[list[bool]] = []
    wrong = extra = 0
    for case in cases:
        found = [mention for mention in times_in(case.text, case.said, language) if mention.is_resolved]
        rights = [_is_right(wanted, found) for wanted in case.wanted]
        hits.append(rights)
        wrong += sum(
            not right and any(_overlap((wanted.start, wanted.end), (mention.start, mention.end)) for mention in found)
            for wanted, right in zip(case.wanted, rights, strict=True)
        )
        extra += sum(not any(_overlap((each.start, each.end), span) for span in case.taken) for each in found)
    right = sum(map(sum, hits))
    return _share(hits) | {"wrong": wrong, "extra": extra, "precision": round(right / (right + wrong + extra), 3)}


def _is_right(wanted: WantedTime, found: list[TimeMention]) -> bool:
    return any(
        _overlap((wanted.start, wanted.end), (each.start, each.end))
        and _by_spec(each, has_clock=wanted.has_clock) & set(wanted.values)
        for each in found
    )


def _by_spec(mention: TimeMention, *, has_clock: bool) -> set[Span]:
    """Return the days of a mention as the specification writes them."""
    one = mention.named[0]
    is_day = (one.end_day - one.first_day).days == 1
    if mention.bound == "range":
        ends = {(one.first_day, mention.named[1].first_day)}
        # a range of times within a day, or from a day to another: its last day is whole
        return ends | ({(mention.first_day, mention.end_day)} if has_clock else set())
    if mention.bound == "since":
        return {(one.first_day, None)}
    if mention.bound == "after":
        return {(one.first_day if is_day else one.end_day, None)}
    if mention.bound in {"before", "until", "by"}:
        return {(None, one.first_day)}
    return {(mention.first_day, mention.end_day)}


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _share(hits: list[list[bool]]) -> dict[str, Any]:
    """Return the share of true values with its bootstrap interval."""
    counted = [rights for rights in hits if rights]
    rights = [right for case in counted for right in case]

    def get_mean(sample: list[list[bool]]) -> float:
        drawn = [right for case in sample for right in case]
        return sum(drawn) / len(drawn)

    drawn = resample(counted, get_mean, _DRAWS, seed=1)
    low, high = get_percentile(drawn, 0.025), get_percentile(drawn, 0.975)
    return {"right": get_share(rights), "interval": (round(low, 3), round(high, 3)), "results": len(rights)}


def rival(cases: list[TimeCase], language: str, python: Path) -> dict[str, Any]:
    """Return dateparser's share of right results, and its milliseconds."""
    lines = [json.dumps((case.text, case.said.replace(tzinfo=None).isoformat(), language)) for case in cases]
    begun = time.perf_counter()
    done = subprocess.run([python, "-c", _RIVAL], input="\n".join(lines), capture_output=True, text=True, check=True)
    taken = time.perf_counter() - begun
    hits = []
    for case, line in zip(cases, done.stdout.splitlines(), strict=True):
        rows = json.loads(line)
        hits.append([_is_found(wanted, rows) for wanted in case.wanted])
    return _share(hits) | {"milliseconds": round(1000 * taken / len(cases), 1)}


def _is_found(wanted: WantedTime, rows: list[tuple[int, int, str]]) -> bool:
    days = {f"{end_day if first is None else first}" for first, end_day in wanted.values}
    return any(_overlap((wanted.start, wanted.end), (start, end)) and day in days for start, end, day in rows)
