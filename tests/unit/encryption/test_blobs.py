"""Texts in files of their own: written before they are named, read with a check, swept when nobody names them."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.encryption.blobs import AgentBlobs, SweepResult, find_names
from agent_memory.errors import StorageError
from agent_memory.files.layout import AgentFolder
from tests.concurrency.processes import REPOSITORY, environment

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "A long text about the network at home. " * 300
NOW = timedelta(0)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def kept(folder: Path, *texts: str) -> AgentBlobs:
    blobs = AgentBlobs(AgentFolder(folder))
    with blobs.keeping(texts) as names:
        assert names == [digest(text) for text in texts]
    return blobs


def test_a_text_is_private_and_comes_back_as_it_was(tmp_path: Path) -> None:
    blobs = kept(tmp_path, TEXT, "Grüße 👋")
    assert (blobs.read(digest(TEXT)), blobs.read(digest("Grüße 👋"))) == (TEXT, "Grüße 👋")
    assert stat.S_IMODE((blobs.folder / digest(TEXT)).stat().st_mode) == 0o600
    assert stat.S_IMODE(blobs.folder.stat().st_mode) == 0o700
    assert blobs.names() == {digest(TEXT): len(TEXT), digest("Grüße 👋"): len("Grüße 👋".encode())}


@pytest.mark.parametrize("name", ["../memories.yaml", "", "0" * 64, "A" * 64])
def test_a_name_that_is_not_there_says_what_to_do(tmp_path: Path, name: str) -> None:
    with pytest.raises(StorageError) as caught:
        kept(tmp_path, TEXT).read(name)
    assert caught.value.code == "blob_missing"


def test_what_was_changed_is_not_read_and_is_written_again(tmp_path: Path) -> None:
    blobs = kept(tmp_path, TEXT)
    (blobs.folder / digest(TEXT)).write_text("something else")
    with pytest.raises(StorageError) as caught:
        blobs.read(digest(TEXT))
    assert caught.value.code == "blob_damaged"
    assert kept(tmp_path, TEXT).read(digest(TEXT)) == TEXT


def test_a_sweep_takes_what_no_file_names_and_was_written_long_ago(tmp_path: Path) -> None:
    blobs, journal = kept(tmp_path, TEXT, "named", "new"), tmp_path / "knowledge.yaml"
    journal.write_text(f'--- {{"data": {{"blob": "{digest("named")}"}}}}\n')
    for text in (TEXT, "named"):
        os.utime(blobs.folder / digest(text), (0, 0))
    assert blobs.sweep(lambda: [journal, tmp_path / "not_there.yaml"], timedelta(days=30)) == SweepResult(1, len(TEXT))
    assert blobs.names().keys() == {digest("named"), digest("new")}
    assert blobs.sweep(lambda: [journal], NOW) == SweepResult(1, 3)
    assert AgentBlobs(AgentFolder(tmp_path / "nowhere")).sweep(lambda: [journal], NOW) == SweepResult()


def test_a_name_across_two_blocks_of_a_file_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_memory.encryption.blobs._BLOCK", 70)
    (tmp_path / "journal").write_text(f'{"x" * 40}"{digest(TEXT)}"{"y" * 90}"{digest("b")}"')
    assert list(find_names(tmp_path / "journal")) == [digest(TEXT), digest("b")]


def test_nothing_is_swept_when_a_file_that_may_name_it_cannot_be_read(tmp_path: Path) -> None:
    blobs = kept(tmp_path, TEXT)
    with pytest.raises(StorageError):
        blobs.sweep(lambda: [tmp_path], NOW)  # a folder in the place of the file
    assert blobs.names()


def test_what_a_process_writes_is_not_swept_before_it_is_named_and_what_a_killed_one_left_is(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys\n"
        "from agent_memory.encryption import AgentBlobs\nfrom agent_memory.files.layout import AgentFolder\n"
        f"with AgentBlobs(AgentFolder(pathlib.Path({str(tmp_path)!r}))).keeping(['{'x' * 50}']):\n"
        "    print('written', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, env=environment()
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "written\n"
        sweeping = (
            "import datetime, pathlib\n"
            "from agent_memory.encryption import AgentBlobs\nfrom agent_memory.files.layout import AgentFolder\n"
            "print('begun', flush=True)\n"
            f"blobs = AgentBlobs(AgentFolder(pathlib.Path({str(tmp_path)!r})))\n"
            "print(blobs.sweep(lambda: [], datetime.timedelta(0)).count, flush=True)\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", sweeping], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, env=environment()
        ) as sweeper:
            assert sweeper.stdout is not None
            assert sweeper.stdout.readline() == "begun\n"
            assert sweeper.poll() is None
            assert digest("x" * 50) in AgentBlobs(AgentFolder(tmp_path)).names()
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            assert sweeper.stdout.readline() == "1\n"
    assert AgentBlobs(AgentFolder(tmp_path)).names() == {}
