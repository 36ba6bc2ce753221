"""Read a file that people edit, once no program is writing it. Blocking: call it in a thread."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

from agent_memory.errors import BusyError, StorageError
from agent_memory.files.atomic import open_to_read
from agent_memory.files.exchange import undisturbed

if TYPE_CHECKING:
    from pathlib import Path

_BETWEEN_LOOKS: Final = 0.005
_MIB: Final = 1024 * 1024


def read_settled(path: Path, patience: float, max_bytes: int) -> tuple[bytes, float]:
    """Return what is in a file that no program is writing, and when it was changed, in seconds since 1970.

    Args:
        path: The file.
        patience: Seconds to wait for a program that is in the middle of writing it.
        max_bytes: A larger one is not read.

    Raises:
        BusyError: A program has it open for writing all the time.
        StorageError: It is larger (`too_long`).
        OSError: It is not there, or cannot be read.
    """
    deadline = time.monotonic() + patience
    with os.fdopen(open_to_read(path), "rb") as file:
        while True:
            with undisturbed(file.fileno()) as quiet:
                if quiet is not False:
                    status = os.fstat(file.fileno())
                    content = file.read(max_bytes + 1) if status.st_size <= max_bytes else None
                    break
            if time.monotonic() > deadline:
                raise BusyError(
                    f"Another program has {path.name} open for writing.", recovery="Save and close it there."
                )
            time.sleep(_BETWEEN_LOOKS)
    # It may have grown since, where programs cannot be kept from writing.
    if content is None or len(content) > max_bytes:
        raise StorageError(
            f"{path.name} has more than {max_bytes // _MIB} MiB, so it is neither read nor rendered anew.",
            code="too_long",
            recovery="Move it out of the agent's folder, or make it shorter. Memories are kept and found all the same.",
            path=path,
        )
    return content, max(status.st_mtime, status.st_ctime)
