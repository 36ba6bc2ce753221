"""The benchmark that kills what takes in, in small; and that it notices what is lost."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks.crash_ingestion import problems_of, settings_of, texts_of, work, write_files
from tests.concurrency.processes import REPOSITORY, environment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.deep


def test_nothing_is_lost_and_nothing_is_there_twice() -> None:
    command = [sys.executable, "-m", "benchmarks.crash_ingestion", "--json", "--kills", "6"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, env=environment(), check=False)
    assert result.stdout, result.stderr
    report = json.loads(result.stdout)
    assert (result.returncode, report["problems"]) == (0, [])
    assert report["kills"] >= 6


def test_it_notices_what_is_lost_and_what_is_there_twice(tmp_path: Path) -> None:
    root = tmp_path / "root"
    asyncio.run(work(root, write_files(tmp_path, 0)))
    assert asyncio.run(problems_of(root, [0])) == []
    assert f"lost: {texts_of(1)[0][0]}" in asyncio.run(problems_of(root, [0, 1]))
    assert settings_of(root).embedder == "none"
    copy = tmp_path / "again.jsonl"
    copy.write_text((tmp_path / "chat0.jsonl").read_text())
    asyncio.run(work(root, [copy]))
    assert f"twice: {texts_of(0)[0][0]}" in asyncio.run(problems_of(root, [0]))
    for blob in (root / "bob" / "blobs").iterdir():
        blob.write_text("something else")
    with pytest.raises(Exception, match="not what was stored"):
        asyncio.run(problems_of(root, [0]))
