"""The vector cache: what it keeps, what it forgets, and how it fails."""

import os
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from agent_memory.embeddings import EmbedderIdentity, VectorCache, text_hash
from agent_memory.embeddings import cache as cache_module
from agent_memory.embeddings.cache import inspect_cache, round_vector

ONE = EmbedderIdentity("test", "one", 4)
TWO = EmbedderIdentity("test", "two", 4)
KEY = text_hash("a fact")


def _vector(*numbers: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return round_vector(np.array(numbers, dtype=np.float32))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "embeddings.sqlite3"


@pytest.fixture
def cache(path: Path) -> Iterator[VectorCache]:
    opened = VectorCache(path)
    yield opened
    opened.close()


def test_a_kept_vector_comes_back_exactly_as_rounded(cache: VectorCache) -> None:
    vector = np.array([0.1, 0.2, 0.3, 0.4], dtype=np.float32)
    assert cache.put_many(ONE, {KEY: vector})
    assert np.allclose(cache.get_many(ONE, [KEY])[KEY], round_vector(vector), atol=1e-7)
    assert cache.get_many(TWO, [KEY]) == {}, "another identity knows nothing"


def test_only_what_was_asked_for_comes_back(cache: VectorCache) -> None:
    many = {text_hash(str(number)): _vector(1, number, 0, 0) for number in range(1000)}
    cache.put_many(ONE, many)
    assert cache.get_many(ONE, [KEY]) == {}
    assert cache.get_many(ONE, list(many)[:3]).keys() == set(list(many)[:3])
    assert cache.get_many(ONE, list(many)[:700]).keys() == set(list(many)[:700])


def test_a_vector_outlives_the_process_that_wrote_it_and_its_text_is_not_in_the_file(
    cache: VectorCache, path: Path
) -> None:
    key = text_hash("the launch code is swordfish")
    cache.put_many(ONE, {key: _vector(1, 0, 0, 0)})
    cache.close()
    assert b"swordfish" not in path.read_bytes()
    again = VectorCache(path)
    assert key in again.get_many(ONE, [key])
    again.close()


def test_pruning_drops_every_identitys_vector_of_a_dead_text(cache: VectorCache) -> None:
    other = text_hash("kept")
    for identity in (ONE, TWO):
        cache.put_many(identity, {KEY: _vector(1, 0, 0, 0), other: _vector(0, 1, 0, 0)})
    assert cache.prune({other}) == 2
    assert cache.get_many(ONE, [KEY, other]).keys() == {other}
    assert cache.get_many(TWO, [KEY, other]).keys() == {other}


def test_a_pruned_vectors_bytes_are_gone_from_the_file(cache: VectorCache, path: Path) -> None:
    blob = np.asarray(_vector(0.123, 0.456, 0.789, 0.321), dtype="<f2").tobytes()
    cache.put_many(ONE, {KEY: _vector(0.123, 0.456, 0.789, 0.321)})
    cache.prune(set())
    cache.close()
    assert blob not in path.read_bytes()


def test_a_damaged_schema_is_begun_anew(cache: VectorCache, path: Path) -> None:
    """SQLite hands out the text of its schema as it is, and Python cannot read it as UTF-8."""
    cache.put_many(ONE, {KEY: _vector(1, 0, 0, 0)})
    cache.close()
    content = path.read_bytes()
    path.write_bytes(content.replace(b"CREATE TABLE vectors", b"CREATE TABLE vecto\xff\xfe"))
    again = VectorCache(path)
    assert again.get_many(ONE, [KEY]) == {}
    assert again.put_many(ONE, {KEY: _vector(0, 1, 0, 0)})
    assert "begun anew" in str(again.problem)
    again.close()


@pytest.mark.parametrize("dimension", [4, 384])
def test_what_is_kept_as_it_should_be_is_not_spoilt(path: Path, dimension: int) -> None:
    """Short vectors are kept as halves of floats, long ones as bytes."""
    identity = EmbedderIdentity("test", "one", dimension)
    cache = VectorCache(path)
    cache.put_many(identity, {KEY: np.ones(dimension, np.float32)})
    cache.close()
    facts = inspect_cache(path)
    assert (len(facts.hashes[str(identity)]), facts.damaged) == (1, frozenset())


def test_forgetting_by_hash(cache: VectorCache) -> None:
    cache.put_many(ONE, {KEY: _vector(1, 0, 0, 0)})
    cache.forget([KEY])
    assert cache.get_many(ONE, [KEY]) == {}


def test_an_unreadable_file_is_set_aside_and_begun_anew_with_a_report(path: Path) -> None:
    path.write_bytes(b"this is no database, whatever its name says" * 50)
    cache = VectorCache(path)
    assert cache.get_many(ONE, [KEY]) == {}
    assert cache.put_many(ONE, {KEY: _vector(1, 0, 0, 0)})
    assert KEY in cache.get_many(ONE, [KEY])
    assert "set aside" in (cache.problem or "")
    assert path.with_name("embeddings.sqlite3.broken").read_bytes().startswith(b"this is no database")
    cache.close()


def test_a_vector_takes_little_more_than_its_numbers(cache: VectorCache, path: Path) -> None:
    numbers, identity = np.random.default_rng(1).standard_normal((600, 384)), EmbedderIdentity("test", "long", 384)
    for begin in range(0, len(numbers), 20):
        cache.put_many(identity, {text_hash(str(at)): round_vector(numbers[at]) for at in range(begin, begin + 20)})
    cache.close()
    assert path.stat().st_size / len(numbers) < 540  # 384 of which are the numbers


def test_rows_with_halves_of_floats_are_read_beside_others(cache: VectorCache, path: Path) -> None:
    numbers, identity = np.random.default_rng(2).standard_normal((2, 384)), EmbedderIdentity("test", "long", 384)
    vectors, other = [each / np.linalg.norm(each) for each in numbers], text_hash("another fact")
    cache.put_many(identity, {KEY: vectors[0], other: vectors[1]})
    cache.close()
    with sqlite3.connect(path) as database:  # as versions before kept it
        old = (np.asarray(vectors[0], "<f2").tobytes(), KEY)
        database.execute("UPDATE vectors SET vector = ? WHERE hash = ?", old)
    database.close()
    found = cache.get_many(identity, [KEY, other])
    assert np.allclose(found[KEY], vectors[0], atol=1e-4)
    assert np.array_equal(found[other], round_vector(vectors[1]))


def test_a_file_whose_rows_lie_by_their_key_is_used_as_it_is(path: Path) -> None:
    with sqlite3.connect(path) as database:  # as versions before made it
        database.executescript(
            """
            CREATE TABLE embedders (id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE) STRICT;
            CREATE TABLE vectors (
                embedder INTEGER NOT NULL REFERENCES embedders(id), hash BLOB NOT NULL, vector BLOB NOT NULL,
                PRIMARY KEY (embedder, hash)
            ) STRICT, WITHOUT ROWID;
            PRAGMA user_version = 1;
            """
        )
        database.execute("INSERT INTO embedders (identity) VALUES (?)", (str(ONE),))
        old = np.asarray(_vector(1, 0, 0, 0), "<f2").tobytes()
        database.execute("INSERT INTO vectors VALUES (1, ?, ?)", (KEY, old))
    database.close()
    cache, other = VectorCache(path), text_hash("another fact")
    assert np.allclose(cache.get_many(ONE, [KEY])[KEY], _vector(1, 0, 0, 0))
    assert cache.put_many(ONE, {other: _vector(0, 1, 0, 0), KEY: _vector(0, 0, 1, 0)})
    assert np.allclose(cache.get_many(ONE, [KEY, other])[KEY], _vector(0, 0, 1, 0))
    assert cache.prune({other}) == 1
    assert cache.get_many(ONE, [KEY, other]).keys() == {other}
    cache.close()


def test_a_file_of_a_newer_version_is_left_to_it(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE vectors (new)")
    database.execute("PRAGMA user_version = 99")
    database.close()
    before = path.read_bytes()
    cache = VectorCache(path)
    assert not cache.put_many(ONE, {KEY: _vector(1, 0, 0, 0)})
    assert cache.get_many(ONE, [KEY]) == {}
    assert cache.problem == "vector cache not in use: it was written by a newer version of agent-memory (schema 99)"
    cache.close()
    assert path.read_bytes() == before


def test_a_file_that_may_only_be_read_is_read(cache: VectorCache, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put_many(ONE, {KEY: _vector(1, 0, 0, 0)})
    cache.close()
    monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.W_OK)
    monkeypatch.setattr(cache_module, "_prepare", _refuse_to_write)
    reader = VectorCache(path)
    assert list(reader.get_many(ONE, [KEY])) == [KEY]
    assert reader.problem is None
    assert not reader.put_many(ONE, {text_hash("new"): _vector(0, 1, 0, 0)})
    assert "readonly" in (reader.problem or "")
    assert list(reader.get_many(ONE, [KEY])) == [KEY]
    reader.close()


def _refuse_to_write(_database: sqlite3.Connection) -> None:
    raise sqlite3.OperationalError("attempt to write a readonly database")


def test_a_damaged_row_counts_as_unknown(cache: VectorCache, path: Path) -> None:
    nan = text_hash("nan")
    cache.put_many(ONE, {KEY: _vector(1, 0, 0, 0), nan: np.full(4, np.nan, dtype=np.float32)})
    cache.close()
    database = sqlite3.connect(path)
    with database:
        database.execute("UPDATE vectors SET vector = x'0102' WHERE hash = ?", (KEY,))
    database.close()
    assert cache.get_many(ONE, [KEY, nan]) == {}


def test_a_folder_that_cannot_be_used_is_reported_and_nothing_raises(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "missing" / "embeddings.sqlite3")
    assert not cache.put_many(ONE, {KEY: _vector(1, 0, 0, 0)})
    assert cache.get_many(ONE, [KEY]) == {}
    assert "not in use" in (cache.problem or "")


def test_no_space_is_reported_and_nothing_raises(cache: VectorCache, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **how: opened.append(connect(*given, **how)) or opened[-1])
    assert cache.put_many(ONE, {KEY: _vector(1, 0, 0, 0)})
    pages = opened[-1].execute("PRAGMA page_count").fetchone()[0]
    opened[-1].execute(f"PRAGMA max_page_count = {pages}")
    big = {text_hash(str(number)): _vector(1, number, 0, 0) for number in range(5000)}
    assert not cache.put_many(ONE, big)
    assert "full" in (cache.problem or "")
    assert KEY in cache.get_many(ONE, [KEY])


def test_without_a_path_it_keeps_nothing() -> None:
    cache = VectorCache(None)
    assert not cache.put_many(ONE, {KEY: _vector(1, 0, 0, 0)})
    assert cache.get_many(ONE, [KEY]) == {}
    assert cache.problem is None


_WRITER = """
import sys
import numpy as np
from pathlib import Path
from agent_memory.embeddings import EmbedderIdentity, VectorCache, text_hash
cache = VectorCache(Path(sys.argv[1]))
identity = EmbedderIdentity("test", "one", 4)
for number in range(60):
    vector = np.array([1, number, 0, 0], dtype=np.float32)
    assert cache.put_many(identity, {text_hash(f"{sys.argv[2]}-{number}"): vector}), cache.problem
"""


def test_several_processes_write_and_nothing_is_lost(cache: VectorCache, path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(_WRITER), str(path)]
    writers = [subprocess.Popen([*command, str(number)]) for number in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    keys = [text_hash(f"{writer}-{number}") for writer in range(3) for number in range(60)]
    assert cache.get_many(ONE, keys).keys() == set(keys)


@pytest.mark.parametrize("target", ["empty", "nowhere"])
def test_a_link_in_its_place_is_not_followed(cache: VectorCache, path: Path, tmp_path: Path, target: str) -> None:
    elsewhere = tmp_path / target
    if target == "empty":
        elsewhere.touch(mode=0o644)
    path.symlink_to(elsewhere)
    assert not cache.put_many(ONE, {KEY: _vector(1, 0, 0, 0)})
    assert cache.get_many(ONE, [KEY]) == {}
    assert not elsewhere.exists() or (elsewhere.stat().st_size, elsewhere.stat().st_mode & 0o777) == (0, 0o644)


def test_its_files_are_private_whatever_the_umask(cache: VectorCache, path: Path, open_umask: None) -> None:
    assert cache.put_many(ONE, {KEY: _vector(1, 0, 0, 0)})
    assert {each.stat().st_mode & 0o777 for each in path.parent.glob(f"{path.name}*")} == {0o600}


def test_many_caches_keep_few_files_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_MOST_CONNECTED", 3)
    caches = [VectorCache(tmp_path / f"{number}.sqlite3") for number in range(8)]
    for cache in caches * 2:
        assert cache.put_many(ONE, {KEY: _vector(1, 0, 0, 0)})
        assert len(list(tmp_path.glob("*-wal"))) <= 3
    assert all(KEY in cache.get_many(ONE, [KEY]) for cache in caches)
    for cache in caches:
        cache.close()
