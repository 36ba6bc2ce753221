"""A file takes another's place, and what is there at that moment comes out whole, whatever kernel and disk can do."""

from __future__ import annotations

import errno
import os
from itertools import count
from typing import TYPE_CHECKING

import pytest

from agent_memory.files import exchange as swapping
from agent_memory.files.exchange import block_writers, put_file_in_place

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def cannot(number: int) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


@pytest.fixture(params=["swaps", "moves and links", "moves and copies"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return which of its three ways is taken, the others being impossible."""
    if request.param != "swaps":
        monkeypatch.setattr(swapping, "_rename", cannot(errno.ENOSYS))
    if request.param == "moves and copies":
        monkeypatch.setattr(os, "link", cannot(errno.EPERM))
    return str(request.param)


@pytest.fixture
def spare(folder: Path) -> Callable[[], Path]:
    numbers = count()
    return lambda: folder / f"spare{next(numbers)}"


def contents(folder: Path) -> list[str]:
    return sorted(path.read_text() for path in folder.iterdir())


def test_what_was_there_comes_out(folder: Path, way: str, spare: Callable[[], Path]) -> None:
    new, place = folder / "new", folder / "place"
    new.write_text("later")
    place.write_text("before")
    put_file_in_place(new, place, spare)
    assert place.read_text() == "later"
    assert contents(folder) == ["before", "later"]


def test_an_empty_place_is_simply_taken(folder: Path, way: str, spare: Callable[[], Path]) -> None:
    new, place = folder / "new", folder / "place"
    new.write_text("later")
    put_file_in_place(new, place, spare)
    assert [path.name for path in folder.iterdir()] == ["place"]
    assert place.read_text() == "later"


def test_a_save_at_the_last_moment_comes_out_too(
    folder: Path, way: str, spare: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    new, place = folder / "new", folder / "place"
    new.write_text("later")
    place.write_text("before")
    real = {"swap": swapping.swap, "move_if_free": swapping.move_if_free}
    saves = iter(["first save", "second save"])

    def after_a_save(name: str) -> Callable[[Path, Path], object]:
        def step(first: Path, second: Path) -> object:
            if (text := next(saves, None)) is not None:
                (folder.parent / "typed").write_text(text)
                (folder.parent / "typed").replace(place)
            return real[name](first, second)

        return step

    for name in real:
        monkeypatch.setattr(swapping, name, after_a_save(name))
    put_file_in_place(new, place, spare)
    assert place.read_text() == "later"
    kept = set(contents(folder))
    assert {"later", "first save"} <= kept
    if way != "swaps":  # which looks once, and is done
        assert "second save" in kept


def test_a_failure_leaves_both_where_they_were(
    folder: Path, spare: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    new, place = folder / "new", folder / "place"
    new.write_text("later")
    place.write_text("before")
    monkeypatch.setattr(swapping, "_rename", cannot(errno.EIO))
    with pytest.raises(OSError, match="Input/output"):
        put_file_in_place(new, place, spare)
    assert (new.read_text(), place.read_text()) == ("later", "before")


def test_a_file_that_is_being_written_is_told_from_one_that_is_not(folder: Path) -> None:
    path = folder / "file"
    path.write_text("x")
    reading = os.open(path, os.O_RDONLY)
    try:
        with block_writers(reading) as quiet:
            if quiet is None:
                pytest.skip("this system does not tell")
            assert quiet is True
        with path.open("a"), block_writers(reading) as quiet:
            assert quiet is False
        with block_writers(reading) as quiet:
            assert quiet is True
        with path.open("a") as again:  # it was let go
            again.write("y")
    finally:
        os.close(reading)
