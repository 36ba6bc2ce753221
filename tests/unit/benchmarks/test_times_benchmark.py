"""The measurement of times counts what it says."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from benchmarks.times import benchmark as times

if TYPE_CHECKING:
    from pathlib import Path


def _result(words: str, kind: str, **value: str) -> dict[str, object]:
    values = [{"type": kind, **value}]
    return {"Text": words, "TypeName": f"datetimeV2.{kind}", "Resolution": {"values": values}}


def _specs(path: Path) -> Path:
    cases = [
        {"Input": "on 3 May 2023", "Results": [_result("3 May 2023", "date", value="2023-05-03")]},
        {"Input": "on 4 May 2023", "Results": [_result("4 May 2023", "date", value="2023-05-05")]},
        {
            "Input": "from May to July 2023",
            "Results": [_result("May", "daterange", start="2023-05-01", end="2023-07-01")],
        },
        {"Input": "since 2020", "Results": [_result("since 2020", "daterange", start="2020-01-01", Mod="since")]},
        {"Input": "before 2020", "Results": [_result("before 2020", "daterange", end="2020-01-01", Mod="before")]},
        {"Input": "in 2020", "NotSupported": "python", "Results": [_result("2020", "date", value="1999-01-01")]},
        {"Input": "for an hour", "Results": [_result("an hour", "duration", value="3600")]},
    ]
    path.write_text(json.dumps(cases))
    return path


def test_a_result_is_right_where_its_days_are(tmp_path: Path) -> None:
    path = _specs(tmp_path / "specs.json")
    cases = times.read(path, "tune") + times.read(path, "judge")
    row = times.measure(cases, "en")
    assert (row["results"], row["right"]) == (5, 0.8)
    assert row["interval"][0] <= row["right"] <= row["interval"][1]


def test_parts_are_by_the_last_digit_of_the_hash(tmp_path: Path) -> None:
    path = _specs(tmp_path / "specs.json")
    for part, rest in (("tune", 0), ("judge", 1)):
        cases = times.read(path, part)
        assert cases
        assert {int(hashlib.sha256(case.text.encode()).hexdigest()[-1], 16) % 2 for case in cases} == {rest}
