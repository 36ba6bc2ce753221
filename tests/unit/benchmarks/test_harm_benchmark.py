"""The harm benchmark: its sets, its counts, its runners on small inputs, and case scripts."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")

from agent_memory.embeddings.testing import HashEmbedder
from benchmarks.harm import areas as harm_areas
from benchmarks.harm import benchmark as harm
from benchmarks.harm.areas import HarmFinding, get_embedder
from benchmarks.harm.benchmark import HarmSet


@pytest.fixture(autouse=True)
def hash_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Embed by hashes, so that no model is loaded."""
    get_embedder.cache_clear()
    monkeypatch.setattr(harm_areas, "LocalEmbedder", HashEmbedder)


def run_rows(name: str, *rows: dict[str, Any]) -> dict[str, Any]:
    return harm.run(HarmSet(name, "reported", "the test", rows))


def count(report: dict[str, Any]) -> tuple[int, int, int, int]:
    return report["wrong"], report["done"], report["offered"], report["missed"]


def write_set(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return path


def test_shipped_sets_cover_every_area_and_name_authors() -> None:
    sets = [harm.load(path) for path in harm.SETS.glob("*.jsonl")]
    assert {harm_set.area for harm_set in sets} == set(harm.AREAS)
    assert {harm_set.name for harm_set in sets} == set(harm.RUNNERS)
    assert all(harm_set.author and harm_set.inputs for harm_set in sets)


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ({"set": "pairs", "area": "reported"}, "without about, author"),
        ({"set": "poems", "area": "reported", "author": "x", "about": "x"}, "no runner 'poems'"),
        ({"set": "pairs", "area": "rhymes", "author": "x", "about": "x"}, "no area 'rhymes'"),
    ],
)
def test_set_without_header_fields_is_refused(head: dict[str, str], problem: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=problem):
        harm.load(write_set(tmp_path / "set.jsonl", head))


def test_wrong_act_counts_as_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def grade(_: Any, row: dict[str, Any]) -> HarmFinding:
        return HarmFinding("input", row["wrong"], row["act"])

    monkeypatch.setitem(harm.RUNNERS, "pairs", grade)
    acts = [("", "done"), ("bad", "done"), ("bad", ""), ("", "missed"), ("", "")]
    report = run_rows("pairs", *({"wrong": wrong, "act": act} for wrong, act in acts))
    assert (count(report), report["inputs"], report["wanted"]) == ((2, 1, 0, 2), 5, 3)
    lines = harm.render([report])
    assert lines.index("wrong acts:") < lines.index("missed acts:")
    assert lines[-1] == "pairs: written by the test"


def test_forget_runner_offers_the_right_memory() -> None:
    memories = ["My bike is red.", "My sister's bike is blue."]
    report = run_rows("forgotten", {"memories": memories, "request": "my bike", "right": [0]})
    assert (report["wrong"], report["missed"]) == (0, 0)


def test_forget_runner_reports_a_memory_not_asked_for() -> None:
    report = run_rows("forgotten", {"memories": ["My bike is red."], "request": "my bike", "right": []})
    assert report["wrong_acts"] == ["my bike: forgot ['My bike is red.']"]


def test_ranked_runner_reports_another_first_result() -> None:
    row = {"memories": ["Pump P-1 is old.", "Pump P-2 is new."], "query": "P-2"}
    assert count(run_rows("ranked", row | {"right": 1}, row | {"right": 0})) == (1, 1, 0, 1)


def test_edited_runner_checks_stale_and_current_words() -> None:
    row = {
        "name": "tea.md",
        "before": "# Tea\n\nTea is at four.\n",
        "after": "# Tea\n\nTea is at five.\n",
        "query": "tea",
    }
    right, wrong = row | {"stale": "four", "current": "five"}, row | {"stale": "five", "current": "four"}
    assert count(run_rows("edited", right, wrong)) == (1, 1, 0, 1)


def test_dates_runner_compares_resolved_days() -> None:
    row = {"text": "It broke on 2024-02-29.", "said": "2025-09-17T10:00:00+00:00"}
    right = row | {"first": "2024-02-29", "end": "2024-03-01"}
    wrong = row | {"first": "2024-02-28", "end": "2024-02-29"}
    dateless = row | {"first": None, "end": None}
    assert count(run_rows("dates", right, wrong, dateless)) == (2, 1, 0, 1)


def test_offsets_runner_reads_the_day_shown() -> None:
    row = {"text": "The vet came today.", "said": "2025-06-15T12:00:00Z"}
    assert count(run_rows("offsets", row | {"first": "2025-06-15"}, row | {"first": "2025-06-10"})) == (0, 1, 1, 0)


def test_entities_runner_reports_merged_names() -> None:
    row = {"first": "UK", "second": "U.K.", "type": "place"}
    assert count(run_rows("entities", row | {"same": True}, row | {"same": False})) == (1, 1, 0, 0)


def test_duplicates_runner_reports_dropped_texts() -> None:
    row = {"first": "Tea is hot.", "second": "Tea  is hot."}
    assert count(run_rows("duplicates", row | {"same": True}, row | {"same": False})) == (1, 1, 0, 1)


def test_exports_runner_checks_turns_and_reports() -> None:
    content = '{"role": "user", "content": "The rake is red."}\n{"role": "assistant", "content": "Noted."}\n'
    row = {"name": "talk", "file": "talk.jsonl", "content": content, "turns": [["rake is red", None]]}
    right = row | {"absent": [], "reported": False}
    shown, silent = right | {"absent": ["Noted"]}, right | {"reported": True}
    assert count(run_rows("exports", right, shown, silent)) == (2, 1, 0, 2)


def test_denied_runner_reports_denied_answers() -> None:
    row = {"memories": ["The rake is red."]}
    known, unknown = {"question": "rake red", "right": 0}, {"question": "rake red", "right": None}
    denied = {"question": "zebra", "right": 0}
    assert count(run_rows("denied", row | known, row | unknown, row | denied)) == (2, 1, 0, 1)


def test_pairs_runner_tells_conflicts_from_harmless_pairs() -> None:
    row = {"older": "Use MySQL for the ledger", "newer": "Use SQLite for the ledger"}
    report = run_rows("pairs", row | {"want": "conflict"}, row | {"want": "none"})
    assert count(report) == (1, 1, 0, 0)


def test_relations_runner_offers_the_dated_messages() -> None:
    said = "I gave up my flat in Graz."
    messages = [["Noa", "Tea is fine.", "2024-02-05T09:00:00Z"], ["Uri", "I see.", "2024-02-05T09:01:00Z"]]
    row = {"messages": [*messages, ["Noa", said, "2025-02-05T09:00:00Z"]], "entity": "Noa", "ended": "Graz", "true": []}
    assert count(run_rows("relations", row)) == (0, 0, 1, 0)


def test_cases_count_exit_codes_and_inputs(tmp_path: Path) -> None:
    for name, code in (("01-good", 0), ("02-bad", 1), ("99-other", 1)):
        script = tmp_path / name / "run.py"
        script.parent.mkdir()
        script.write_text(f"print('{name}: {3 - code} of 3 right')\nraise SystemExit({code})\n", "utf-8")
    cases = harm.run_cases(tmp_path, ["01", "02"])
    assert [(case.name, case.code, case.right, case.total) for case in cases] == [
        ("01-good", 0, 3, 3),
        ("02-bad", 1, 2, 3),
    ]
    assert harm.render_cases(cases)[-1] == "cases: 1 of 2 passed, 5 of 6 inputs right"


def test_harm_main_prints_json_and_returns_one_for_harm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = {"set": "duplicates", "area": "dropped", "author": "the test", "about": "texts"}
    good = write_set(tmp_path / "good.jsonl", head, {"first": "a b", "second": "c d", "same": False})
    bad = write_set(tmp_path / "bad.jsonl", head, {"first": "a b", "second": "a  b", "same": False})
    assert harm.main([str(good), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sets"][0]["done"] == 1
    assert harm.main([str(bad)]) == 1
    assert "the second is dropped" in capsys.readouterr().out


def test_harm_main_refuses_a_file_without_a_header(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        harm.main([str(write_set(tmp_path / "empty.jsonl"))])
    assert caught.value.code == 2
