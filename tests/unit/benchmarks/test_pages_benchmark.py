"""The benchmark of pages on a talk of its own: it finds nothing lost, and finds what is made to be lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from benchmarks.pages import benchmark as pages
from benchmarks.pages.data import load_requests, load_talks

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from benchmarks.pages.data import PagedTalk


def talk(folder: Path) -> PagedTalk:
    turns = [
        {"speaker": name, "dia_id": f"D1:{at}", "text": f"I have seen the garden of house {at} with my sister. Nice!"}
        for at, name in enumerate(["Lea", "Tom"] * 30)
    ]
    data = {
        "sample_id": "own",
        "conversation": {
            "speaker_a": "Lea", "speaker_b": "Tom", "session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": turns,
        },
        "observation": {"session_1_observation": {"Lea": [["Lea sees gardens.", "D1:0"], ["More", ["D1:2", "D1:4"]]]}},
    }  # fmt: skip
    (folder / "talk.json").write_text(json.dumps([data]), "utf-8")
    return load_talks(folder / "talk.json")[0]


def test_nothing_is_lost_and_every_footnote_resolves(tmp_path: Path) -> None:
    counts = pages.pages_of(talk(tmp_path), rounds=8, seed=1)

    assert counts["rewrites"] == 2 * 8
    assert counts["footnotes"] > 100
    assert not [name for name in ("lost", "unresolved", "by hand lost", "refused", "too long") if counts[name]]


def test_a_page_that_loses_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pages.consolidate
    monkeypatch.setattr(pages, "consolidate", lambda before, items, **more: whole(before, items[1:], **more))

    assert pages.pages_of(talk(tmp_path), rounds=4, seed=1)["lost"] > 0


def test_requests_come_with_their_domains(tmp_path: Path) -> None:
    domains = {"banking": ["pay_bill", "transfer"], "meta": ["repeat"]}
    data = {"test": [[f"please pay bill {at}", "pay_bill"] for at in range(260)], "oos_test": [["why", "oos"]] * 60}
    for name, content in (("domains", domains), ("data_full", data)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content), "utf-8")

    declared, sample = load_requests(tmp_path, 2)

    assert [(each.name, each.description) for each in declared] == [("banking", "pay bill, transfer")]
    assert sorted({label for _, label in sample}) == ["", "banking"]
    assert pages.requests_filed(tmp_path, 2, None)["seen"]["right"] == 1.0
