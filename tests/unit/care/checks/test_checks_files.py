"""What the doctor finds in an agent's folder beside the journal: its place, its neighbours, and what is derived."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
from typing import TYPE_CHECKING

import pytest

from agent_memory.care.checks import examination
from agent_memory.care.checks.codes import Severity
from agent_memory.care.checks.examination import examine
from agent_memory.files.entries import get_lock_state
from tests.support import NOON, resealed
from tests.unit.care.checks.homes import LIVE, identity, rewrite_json, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_memory.care.checks.codes import Finding

    Found = Callable[[], dict[str, Finding]]


# -- the place ------------------------------------------------------------------------------------------------------


def test_permissions_count_where_others_can_get_in(bob: Path, found: Found) -> None:
    (bob / "memories.yaml").chmod(0o644)
    assert "permissions_open" not in found(), "nobody else gets into the folder"
    bob.chmod(0o755)
    assert "read the folder and 1 file" in found()["permissions_open"].sentence
    bob.chmod(0o777)
    assert "change" in found()["permissions_open"].sentence


def test_a_folder_that_leads_out_of_the_home_is_a_problem_of_that_agent_alone(
    bob: Path, root: Path, tmp_path: Path
) -> None:
    (root / "eve").symlink_to(tmp_path)
    (root / "loop").symlink_to("loop")
    severities = {agent.agent_id: agent.severity for agent in examine(root, now=NOON).agents}
    assert severities == {"bob": Severity.OK, "eve": Severity.PROBLEM, "loop": Severity.PROBLEM}


def test_a_synchronised_folder_and_names_that_differ_in_case_alone_are_warned_about(bob: Path, tmp_path: Path) -> None:
    root = tmp_path / "Dropbox" / "memory"
    root.parent.mkdir()
    shutil.copytree(bob.parent, root)
    sentences = {finding.code: finding.sentence for finding in examine(root, now=NOON).agents[0].findings}
    assert "Dropbox" in sentences["synced_folder"]
    shutil.copytree(bob, root / "Bob")
    assert "names_clash" in {finding.code for finding in examine(root, now=NOON).findings}


def test_a_full_disk_is_a_problem(bob: Path, found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs(bob)
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result((*real[:4], 0, *real[5:])))
    assert "disk_full" in found()


def test_who_holds_the_lock_is_named(bob: Path) -> None:
    with (bob / ".lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert get_lock_state(bob / ".lock").state == "held"
        assert get_lock_state(bob / ".lock").pid in {os.getpid(), None}, "None where the platform does not tell"
    assert get_lock_state(bob / ".lock").state == "free"


# -- what is derived ------------------------------------------------------------------------------------------------


def test_a_scratchpad_is_broken_edited_or_stale(bob: Path, found: Found) -> None:
    pad = bob / "scratchpad.yaml"
    text = pad.read_text()
    pad.write_text(text.replace("Fact number 7", "My own words"))
    assert "scratchpad_edited" in found()
    pad.write_text("- [")
    assert "scratchpad_broken" in found()
    pad.write_text(text)
    journal = bob / "memories.yaml"
    line = journal.read_bytes().splitlines(keepends=True)[1].replace(b"mem-000000000000", b"mem-00000000beef")
    journal.write_bytes(journal.read_bytes() + resealed(line))
    assert "scratchpad_stale" in found()


def test_an_index_is_behind_or_ahead_of_the_journal(bob: Path, found: Found) -> None:
    state = next((bob / "memories.db").glob("*/state.json"))
    rewrite_json(state, seq=LIVE)
    assert "On disk the index is behind by 5 changes" in found()["index_behind"].sentence
    rewrite_json(state, seq=999)
    assert found()["index_ahead"].severity is Severity.WARNING


def test_an_index_is_missing_damaged_unused_or_half_built(bob: Path, found: Found) -> None:
    index = bob / "memories.db"
    shard = next(path for path in index.iterdir() if path.is_dir())
    shutil.copytree(shard, index / "0123456789ab")
    (index / ".new-0123456789cd").mkdir()
    assert {"index", "index_unused", "index_half_built"} <= found().keys()
    (shard / "state.json").write_text("{")
    assert "damaged" in found()["index_broken"].sentence
    shutil.rmtree(shard)
    assert "missing" in found()["index_broken"].sentence


def test_vectors_are_counted_by_embedder_and_by_use(bob: Path, found: Found) -> None:
    assert f"{LIVE} vectors of {identity()}" in found()["vectors"].sentence
    with sqlite3.connect(bob / "embeddings.sqlite3") as database:
        database.execute("UPDATE vectors SET hash = x'00' WHERE hash = (SELECT min(hash) FROM vectors)")
    database.close()
    codes = found()
    assert codes["vectors_orphaned"].sentence.startswith("1 vector ")


def test_a_cache_with_a_log_beside_it_is_read_with_that_log_and_left_alone(bob: Path, root: Path, found: Found) -> None:
    database = sqlite3.connect(bob / "embeddings.sqlite3")
    database.execute("PRAGMA wal_autocheckpoint = 0")
    with database:
        database.execute("UPDATE vectors SET hash = x'00' WHERE hash = (SELECT min(hash) FROM vectors)")
    (bob.parent / "kept").mkdir(mode=0o700)
    shutil.copytree(bob, bob.parent / "copy")  # as a crash leaves it
    database.close()
    before = snapshot(bob.parent / "copy")
    codes = {finding.code for finding in examine(root, ["copy"], now=NOON).agents[0].findings}
    assert "vectors_orphaned" in codes
    assert snapshot(bob.parent / "copy") == before


def test_a_damaged_cache_is_a_warning(bob: Path, found: Found) -> None:
    path = bob / "embeddings.sqlite3"
    content = bytearray(path.read_bytes())
    content[4096:8192] = b"\xff" * 4096
    path.write_bytes(content)
    assert "vectors_broken" in found()


def test_session_notes_that_dangle_or_are_broken_are_noted(bob: Path, root: Path, found: Found) -> None:
    (root / "_sessions" / "a.json").write_text('{"session_id": "s", "agent_id": "carol"}')
    (root / "_sessions" / "b.json").write_text("{")
    codes = found()
    assert "carol" in codes["session_dangling"].sentence
    assert codes["session_broken"].details == ("b.json",)


@pytest.mark.model
def test_weights_that_are_not_the_expected_ones_are_a_warning(
    bob: Path, found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "model_broken" not in found()
    monkeypatch.setattr(examination, "MINILM_SHA256", "0" * 64)
    assert "model_broken" in found()
