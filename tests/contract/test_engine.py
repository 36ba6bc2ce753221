"""What we rely on in the embedded engine, and what we know of its weak sides. A new version has to pass this."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pytest

from agent_memory.engines.shard import Shard
from agent_memory.engines.shard_process import EngineClient, PayloadConditions, build_payload
from agent_memory.errors import StorageError
from agent_memory.files.processes import child_environment
from agent_memory.models import MEMORY
from tests.engines import WIDTH, payload, unit_rows
from tests.support import memory_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")
PATIENCE = 60.0
POINTS = int(os.environ.get("ENGINE_POINTS", "400"))
"""Of the tests that measure; 100000 reproduces the figures in docs/benchmarks.md."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "gen" / "shard"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def shard(folder: Path) -> Iterator[Shard]:
    shard = Shard.create(folder, WIDTH)
    yield shard
    shard.close()


def test_no_text_goes_into_a_payload() -> None:
    payload = build_payload(MEMORY.document(memory_of("a secret plan", tags=["a"], created_by_session="s-1")))
    assert "secret" not in str(payload)
    assert payload.keys() == {"id", "facets", "timestamp"}


# -- what the engine must do ------------------------------------------------------------------------------------------


def test_what_is_written_comes_back(shard: Shard) -> None:
    rows = unit_rows(50)
    shard.upsert(0, [payload(n) for n in range(50)], rows.tolist())
    assert shard.count() == 50
    assert dict(shard.owners()) == {n: f"mem-{n:012x}" for n in range(50)}
    for number in (0, 17, 49):
        found = shard.nearest(rows[number].tolist(), 3)
        assert found[0] == (number, pytest.approx(1.0, abs=2e-3))
    assert np.allclose(shard.vectors([7])[7], rows[7], atol=1e-3)
    assert shard.vectors([999]) == {}


def test_all_pages_of_a_large_shard_are_read(shard: Shard) -> None:
    rows = unit_rows(2500).tolist()
    shard.upsert(0, [payload(n) for n in range(2500)], rows)
    assert len(dict(shard.owners())) == 2500


def test_scores_are_cosines_best_first_and_above_the_floor(shard: Shard) -> None:
    rows = unit_rows(200)
    shard.upsert(0, [payload(n) for n in range(200)], rows.tolist())
    exact = {n: float(value) for n, value in enumerate(rows @ rows[0])}
    found = shard.nearest(rows[0].tolist(), 200, floor=0.2)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert all(score == pytest.approx(exact[one], abs=2e-3) for one, score in found)
    assert {one for one, _ in found} >= {one for one, value in exact.items() if value > 0.202}
    assert all(exact[one] > 0.198 for one, _ in found)


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        (PayloadConditions(), {0, 1, 2, 3}),
        (PayloadConditions(facets=["category=task"]), {1, 3}),
        (PayloadConditions(facets=["tag=a"]), {0, 1}),
        (PayloadConditions(facets=["tag=a", "tag=b"]), {1}),
        (PayloadConditions(any_facets=["tag=b", "tag=none"]), {1}),
        (PayloadConditions(any_facets=["tag=a", "tag=b"], facets=["tag=a"]), {0, 1}),
        (PayloadConditions(any_facets=["tag=none"]), set()),
        (PayloadConditions(no_facets=["tag=a"], facets=["category=task"]), {3}),
        (PayloadConditions(no_facets=["tag=none"], facets=["tag=a"]), {0, 1}),
        (PayloadConditions(since=100.0), {1, 2, 3}),
        (PayloadConditions(until=100.0), {0, 1}),
        (PayloadConditions(since=100.0, until=200.0), {1, 2}),
        (PayloadConditions(facets=["category=task", "tag=a"], since=50.0), {1}),
        (PayloadConditions(facets=["category=none"]), set()),
    ],
)
def test_every_condition_holds_alone_and_together(shard: Shard, where: PayloadConditions, numbers: set[int]) -> None:
    task, a, b, c = ("category", "task"), ("tag", "a"), ("tag", "b"), ("tag", "c")
    payloads = [
        payload(0, a),
        payload(1, task, a, b, timestamp=100.0),
        payload(2, c, timestamp=200.0),
        payload(3, task, timestamp=300.0),
    ]
    rows = unit_rows(4)
    shard.upsert(0, payloads, rows.tolist())
    assert {one for one, _ in shard.nearest(rows[0].tolist(), 10, where=where)} == numbers


def test_what_was_closed_is_there_again(folder: Path) -> None:
    rows = unit_rows(20).tolist()
    first = Shard.create(folder, WIDTH)
    first.upsert(0, [payload(n) for n in range(20)], rows)
    first.close()
    again = Shard.open(folder)
    assert again.count() == 20
    assert again.nearest(rows[3], 1)[0][0] == 3
    again.close()


def test_the_graph_finds_what_an_exact_search_finds(shard: Shard) -> None:
    rows = unit_rows(POINTS, clusters=max(1, POINTS // 50))
    for start in range(0, POINTS, 500):
        shard.upsert(
            start, [payload(n) for n in range(start, min(POINTS, start + 500))], rows[start : start + 500].tolist()
        )
    shard.optimize()
    queries = rows[:: max(1, POINTS // 50)] + 0.02 * unit_rows(len(rows[:: max(1, POINTS // 50)]), seed=1)
    found = wanted = 0
    for query in queries:
        exact = shard.nearest(query.tolist(), 10, exact=True)
        found += len(dict(exact).keys() & dict(shard.nearest(query.tolist(), 10)).keys())
        wanted += len(exact)
    assert found >= 0.98 * wanted


# -- several processes, and sudden ends -------------------------------------------------------------------------------


def test_a_shard_belongs_to_one_process_and_is_free_when_that_ends(folder: Path) -> None:
    Shard.create(folder, WIDTH).close()
    holder = EngineClient(folder)
    assert holder.read_content(PATIENCE) is not None
    with pytest.raises(StorageError, match=r"(?i)lock|temporarily unavailable"):
        Shard.open(folder)  # the engine's own lock, should ours ever be missing
    second = EngineClient(folder)
    with pytest.raises(StorageError) as busy:
        second.read_content(PATIENCE)
    assert busy.value.code == "busy"
    second.close()
    holder.close()
    third = EngineClient(folder)
    assert third.read_content(PATIENCE) is not None
    third.close()


def test_a_holder_ends_with_the_process_it_works_for(folder: Path) -> None:
    Shard.create(folder, WIDTH).close()
    code = (
        "import sys, os; from pathlib import Path\n"
        "from agent_memory.engines.shard_process import EngineClient\n"
        "client = EngineClient(Path(sys.argv[1])); assert client.read_content(60) is not None\n"
        "print(client.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    agent = subprocess.run(
        [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, env=child_environment(), check=False
    )
    assert agent.returncode == -signal.SIGKILL
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        heir = EngineClient(folder)
        try:
            assert heir.read_content(PATIENCE) is not None
        except StorageError:
            time.sleep(0.05)
            continue
        finally:
            heir.close()
        return
    pytest.fail(f"the process {int(agent.stdout)} still holds the shard")


# -- damaged files: an error or an ended child, never a hanging or crashing agent -----------------------------------


def damage_by_truncation(folder: Path) -> None:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.stat().st_size > 64 and "wal" not in file.parts:
            os.truncate(file, file.stat().st_size // 2)


def damage_by_another_version(folder: Path) -> None:
    for file in folder.rglob("segment.json"):
        file.write_text(json.dumps({"version": "99.0.0", "config": {"unheard": "of"}}))


def damage_by_garbage(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file() and file.suffix == ".json":
            file.write_bytes(b"\x00\xff garbage")


def damage_by_loss(folder: Path) -> None:
    shutil.rmtree(folder / "segments")


@pytest.mark.parametrize("damage", [damage_by_truncation, damage_by_another_version, damage_by_garbage, damage_by_loss])
def test_damage_never_reaches_the_agent(folder: Path, damage: Callable[[Path], None]) -> None:
    shard = Shard.create(folder, WIDTH)
    rows = unit_rows(300)
    shard.upsert(0, [payload(n) for n in range(300)], rows.tolist())
    shard.close()
    damage(folder)
    client = EngineClient(folder)
    try:
        opened = client.read_content(PATIENCE)
    except StorageError as error:
        assert error.code in {"engine", "engine_gone"}  # noqa: PT017 - either is right
    else:
        assert opened is not None
        if len(opened) == 300:  # restored from the engine's own log; less is noticed by the count
            near = client.nearest(rows[7].tolist(), 1, 0.0, PayloadConditions(), patience=PATIENCE)
            assert near is not None
            assert near.pairs[0] == (payload(7)["id"], pytest.approx(1.0, abs=2e-3))
    client.close()


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    nowhere = tmp_path / "gen" / "shard"
    client = EngineClient(nowhere)
    with pytest.raises(StorageError) as failed:
        client.read_content(PATIENCE)
    assert failed.value.code == "engine"
    client.close()


def test_a_hanging_child_costs_a_search_no_more_than_its_patience(folder: Path) -> None:
    Shard.create(folder, WIDTH).close()
    client = EngineClient(folder)
    client.read_content(PATIENCE)
    os.kill(client.pid, signal.SIGSTOP)
    query = unit_rows(1)[0].tolist()
    assert client.nearest(query, 5, 0.0, PayloadConditions(), patience=0.01) is None
    assert client.nearest(query, 5, 0.0, PayloadConditions(), patience=0.01) is None
    os.kill(client.pid, signal.SIGCONT)
    deadline = time.monotonic() + PATIENCE
    while client.nearest(query, 5, 0.0, PayloadConditions(), patience=1.0) is None:
        assert time.monotonic() < deadline, "it never came back"
    client.close()


# -- how long a call holds the interpreter -------------------------------------------------------------------------


def test_every_call_stops_all_threads_which_is_why_none_is_made_in_the_agent(folder: Path) -> None:
    """Measure, not judge: `ENGINE_POINTS=100000 pytest -k stops_all_threads -s` prints the stalls."""
    rows = unit_rows(POINTS, clusters=max(1, POINTS // 50))
    stalls: dict[str, float] = {}
    shard = _timed(stalls, "create", lambda: Shard.create(folder, WIDTH))
    for start in range(0, POINTS, 500):
        some = [payload(n) for n in range(start, min(POINTS, start + 500))]
        part = rows[start : start + 500].tolist()
        _timed(stalls, "upsert 500", lambda some=some, part=part, start=start: shard.upsert(start, some, part))
    _timed(stalls, "flush", shard.flush)
    _timed(stalls, "optimize", shard.optimize)
    _timed(stalls, "nearest 256", lambda: shard.nearest(rows[0].tolist(), 256))
    _timed(stalls, "upsert 1", lambda: shard.upsert(0, [payload(0)], rows[:1].tolist()))
    _timed(stalls, "close", shard.close)
    again = _timed(stalls, "open", lambda: Shard.open(folder))
    again.close()
    sys.stderr.write(f"stalls at {POINTS} points, ms: { {name: round(s * 1000, 1) for name, s in stalls.items()} }\n")
    assert stalls.keys() >= {"open", "optimize", "flush", "close"}


def _timed(stalls: dict[str, float], name: str, call: Callable[[], T]) -> T:
    """Run `call` and note how long a second thread could not run meanwhile, at most."""
    gaps, running = [0.0], threading.Event()

    def tick() -> None:
        last = time.perf_counter()
        while not running.is_set():
            time.sleep(0.0005)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        return call()
    finally:
        running.set()
        ticker.join()
        stalls[name] = max(stalls.get(name, 0.0), *gaps)
