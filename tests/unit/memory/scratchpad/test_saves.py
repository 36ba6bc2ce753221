"""What a person saves in scratchpad.yaml is never overwritten; what is set aside holds no secret and does not stay."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import BusyError, StorageError
from agent_memory.files import exchange as swapping
from agent_memory.memory import scratchpad_file as saves
from agent_memory.memory.scratchpad_file import MAX_BYTES, PadFile, render_file
from tests.support import FrozenClock, memory_of, raises

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEA, COFFEE = memory_of("tea"), memory_of("coffee")
FIRST, SECOND = render_file([TEA], "bob"), render_file([COFFEE, TEA], "bob")


@pytest.fixture
def pad(tmp_path: Path, clock: FrozenClock) -> PadFile:
    file = PadFile(tmp_path / "bob" / "scratchpad.yaml", clock, patience=0.05)
    assert file.replace(FIRST, None)
    return file


@pytest.fixture(params=[True, False], ids=["the kernel swaps", "it cannot"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    if not request.param:
        monkeypatch.setattr(swapping, "_rename", cannot)


def typed(pad: PadFile, content: str) -> None:
    """Save a file with one more entry beside and rename it, as many editors do."""
    beside = pad.path.with_name("typed")
    beside.write_text(FIRST.replace("# rendered", f"- content: {content}\n# rendered"))
    beside.replace(pad.path)


def added(pad: PadFile) -> list[str]:
    return [item["content"] for save in pad.look().saves for item in save.edits.added]


def names(pad: PadFile) -> list[str]:
    return sorted(path.name for path in pad.path.parent.iterdir())


def test_what_was_absorbed_is_replaced_and_nothing_is_left_over(pad: PadFile, kernel: None) -> None:
    assert pad.replace(SECOND, FIRST.encode())
    assert pad.path.read_text() == SECOND
    assert names(pad) == ["scratchpad.yaml"]
    assert pad.look().saves == ()


def test_a_save_that_was_not_absorbed_is_not_replaced(pad: PadFile, kernel: None) -> None:
    typed(pad, "milk")
    assert not pad.replace(SECOND, FIRST.encode())
    assert added(pad) == ["milk"]


def test_a_save_between_the_last_look_and_the_swap_comes_out(
    pad: PadFile, kernel: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: dict[str, Callable[[Path, Path], object]] = {"swap": swapping.swap, "move_if_free": swapping.move_if_free}
    texts = iter(["milk"])

    def after_a_save(name: str) -> Callable[[Path, Path], object]:
        def step(new: Path, place: Path) -> object:
            if (text := next(texts, None)) is not None:
                typed(pad, text)
            return real[name](new, place)

        return step

    for name in real:
        monkeypatch.setattr(swapping, name, after_a_save(name))
    assert not pad.replace(SECOND, FIRST.encode())
    assert pad.path.read_text() == SECOND
    assert added(pad) == ["milk"]
    for save in pad.look().saves:
        pad.discard(save)
    assert names(pad) == ["scratchpad.yaml"]


def test_several_saves_that_came_out_are_told_of_in_their_order(pad: PadFile) -> None:
    for number, content in enumerate(["first", "second"]):
        typed(pad, content)
        old = pad.path.rename(pad.path.with_name(f".scratchpad.yaml.0000000{2 - number}.old"))
        os.utime(old, ns=(number, number))
        assert pad.replace(FIRST, None) is False
    typed(pad, "third")
    assert added(pad) == ["first", "second", "third"]


def test_what_a_killed_rendering_left_behind_goes(pad: PadFile) -> None:
    pad.path.with_name(".scratchpad.yaml.01234567.old").write_text(SECOND)
    assert pad.look().saves == ()
    assert len(names(pad)) == 2, "only who holds the turn removes anything"
    assert pad.look(remove=True).saves == ()
    assert names(pad) == ["scratchpad.yaml"]


def test_who_looks_without_the_turn_takes_nothing_away_from_a_rendering(
    pad: PadFile, kernel: None, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, real = PadFile(pad.path, clock, patience=0.05), saves.put_file_in_place

    def after_a_look(new: Path, place: Path, spare: Callable[[], Path]) -> None:
        assert reader.look().saves == ()
        real(new, place, spare)

    monkeypatch.setattr(saves, "put_file_in_place", after_a_look)
    assert pad.replace(SECOND, FIRST.encode())
    assert pad.path.read_text() == SECOND


def test_a_withdrawn_file_is_gone_unless_somebody_saved_in_between(pad: PadFile) -> None:
    typed(pad, "milk")
    pad.withdraw(FIRST.encode())
    assert added(pad) == ["milk"]
    pad.withdraw(pad.path.read_bytes())
    assert names(pad) == []
    pad.withdraw(b"")


def test_a_program_in_the_middle_of_writing_is_waited_for(pad: PadFile) -> None:
    with pad.path.open("w") as editor:
        editor.write(FIRST[:60])
        editor.flush()
        with pad.path.open("rb") as probe, swapping.block_writers(probe.fileno()) as quiet:
            if quiet is None:
                pytest.skip("this system does not tell who writes a file")
        with pytest.raises(BusyError, match="open for writing"):
            pad.look()
        editor.write(FIRST[60:].replace("# rendered", "- content: milk\n# rendered"))
    assert added(pad) == ["milk"]


def test_who_had_the_file_open_before_it_was_replaced_still_saves(
    pad: PadFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pad.path.open("r+") as probe, swapping.block_writers(probe.fileno()) as quiet:
        if quiet is None:
            pytest.skip("this system does not tell who writes a file")
    real, opened = swapping.swap, []

    def after_opening(new: Path, place: Path) -> None:
        opened.append(place.open("r+"))
        real(new, place)

    monkeypatch.setattr(swapping, "swap", after_opening)
    assert not pad.replace(SECOND, FIRST.encode())
    (editor,) = opened
    assert added(pad) == [], "nothing is saved yet"
    editor.write(FIRST.replace("# rendered", "- content: milk\n# rendered"))
    editor.close()
    assert pad.path.read_text() == SECOND
    assert added(pad) == ["milk"]


def test_what_is_set_aside_holds_no_secret(pad: PadFile) -> None:
    secret = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    name = pad.keep_aside(f"- content: [the token is {secret}\n- content: tea\n".encode())
    kept = pad.path.with_name(name).read_text()
    assert secret not in kept
    assert "[redacted:" in kept
    assert "- content: tea\n" in kept
    assert pad.path.with_name(name).stat().st_mode & 0o777 == 0o600


def test_a_long_file_is_set_aside_entry_by_entry_and_whole(pad: PadFile) -> None:
    text = "".join(f"- content: entry {number} {'words and ' * 30}\n" for number in range(300)) + "- [broken \udcff"
    name = pad.keep_aside(text.encode("utf-8", "surrogateescape"))
    assert pad.path.with_name(name).read_bytes() == text.encode("utf-8", "surrogateescape")


def test_what_was_set_aside_goes_after_thirty_days_and_nothing_else(pad: PadFile, clock: FrozenClock) -> None:
    first = pad.keep_aside(b"- [one")
    clock.advance(days=29)
    second = pad.keep_aside(b"- [two")
    pad.path.with_name("scratchpad.broken-mine.yaml").write_text("a person's own")
    pad.remove_expired()
    assert {first, second} <= set(names(pad))
    clock.advance(days=1, seconds=1)
    pad.remove_expired()
    assert names(pad) == sorted(["scratchpad.broken-mine.yaml", second, "scratchpad.yaml"])


def test_a_file_beyond_any_scratchpad_is_neither_read_nor_replaced(pad: PadFile) -> None:
    with pad.path.open("r+b") as file:
        file.truncate(4 * MAX_BYTES)
    with raises(StorageError, "too_long", match="more than 4 MiB"):
        pad.look()
    with pytest.raises(StorageError, match="more than 4 MiB"):
        pad.replace(SECOND, FIRST.encode())
    assert pad.path.stat().st_size == 4 * MAX_BYTES
