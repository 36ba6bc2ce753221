"""Setting aside what cannot stay where it is: under a name that is free, so that nothing is overwritten."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_memory.errors import StorageError
from agent_memory.files.atomic import open_private, replace_file
from agent_memory.files.exchange import move_if_free

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


def set_aside(path: Path, place: Path, content: bytes | Iterable[bytes] | None = None, *, durable: bool = True) -> Path:
    """Move `path` to `place`, or write `content` there, under that name or the first free one like it; return which.

    Args:
        path: What is set aside: a file, a folder or anything else.
        place: Where it goes; `…-2` and so on where that is taken. See `aside_path`.
        content: Write this, and leave `path` as it is.
        durable: Sync what is written.

    Raises:
        OSError: Nothing was set aside.
        StorageError: No name is free.
    """
    for free in _names_like(place):
        if move_if_free(path, free) if content is None else _written(free, content, durable=durable):
            return free
    raise StorageError(f"There is no free name for {place.name}.")


def _written(place: Path, content: bytes | Iterable[bytes], *, durable: bool) -> bool:
    try:
        os.close(open_private(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    try:
        replace_file(place, content, durable=durable)
    except BaseException:
        place.unlink(missing_ok=True)
        raise
    return True


def _names_like(place: Path) -> Iterator[Path]:
    tail = ".yaml" if place.suffix == ".yaml" else ""
    yield place
    for number in range(2, 1000):
        yield place.with_name(f"{place.name.removesuffix(tail)}-{number}{tail}")
