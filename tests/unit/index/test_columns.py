"""Arrays of a folder are the same whether they are read or mapped, and small ones hold no descriptor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from agent_memory.index import columns as columns_module
from agent_memory.index.columns import ColumnFolder, finish_columns, write_columns

OPEN = Path("/proc/self/fd")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with an array of nothing, 40 small ones and one that is mapped."""
    arrays = {f"small{number}": np.arange(number + 1, dtype=np.int64) for number in range(40)}
    large = np.arange(100_000, dtype=np.int64).reshape(-1, 2)
    write_columns(tmp_path, {**arrays, "nothing": np.empty(0, np.uint8), "large": large})
    finish_columns(tmp_path)
    return tmp_path


def test_arrays_are_as_they_were_written_and_cannot_be_changed(folder: Path) -> None:
    columns = ColumnFolder(folder)
    assert columns["small7"].tolist() == [*range(8)]
    assert columns["nothing"].shape == (0,)
    assert (columns["large"] == np.arange(100_000).reshape(-1, 2)).all()
    for name in ("small7", "large"):
        with pytest.raises(ValueError, match="read-only"):
            columns[name][0] = 1


@pytest.mark.skipif(not OPEN.is_dir(), reason="descriptors are counted in /proc")
def test_only_large_arrays_hold_descriptors(folder: Path) -> None:
    before = len(list(OPEN.iterdir()))
    columns = ColumnFolder(folder)
    assert len(list(OPEN.iterdir())) == before + 1
    assert "large" in columns


@pytest.mark.skipif(not OPEN.is_dir(), reason="descriptors are counted in /proc")
def test_columns_beyond_share_of_descriptors_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_module, "_MAPPED_SHARE", 0.0)
    before = len(list(OPEN.iterdir()))
    columns = ColumnFolder(folder)
    assert len(list(OPEN.iterdir())) == before
    assert (columns["large"] == np.arange(100_000).reshape(-1, 2)).all()
    assert not columns["large"].flags.writeable
