"""Import of onnxruntime without its reports, and safe exit from foreign code.

Only this module imports onnxruntime. From 1.29 on its wheels open a file of their own in the home folder and send
reports, beginning with their import; `ORT_DISABLE_TELEMETRY`, set before that, is their full opt-out. The call of the
same purpose comes too late for what the import began, but it silences the rest if other code imported it first.

A thread that is inside foreign code when the interpreter exits is ended by force through frames of C++ or Rust, which
aborts the whole process. So a model is run within `foreign_code`, in batches that take a fraction of a second.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import re
import sys
import threading
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import EmbeddingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OPT_OUT: Final = "ORT_DISABLE_TELEMETRY"
_OTHER_NAME: Final = "ORT_TELEMETRY_DISABLED"  # what its development called it for a while
_OPTED_OUT: Final = frozenset({"1", "true", "yes"})
_REPORTS_FROM: Final = (1, 29)
_TOO_LATE: Final = (
    f"This program had imported onnxruntime before agent-memory did, without {OPT_OUT}=1, so onnxruntime may report to "
    "its maker, though no text of a memory."
)
_problems: Final[set[str]] = set()
_TEXTS: Final = 8
"""Peak memory grows with the batch; larger batches are not faster."""
_BYTES: Final = 1200
_OF_ONE_TEXT: Final = 1000
"""Bytes of a piece, and what of a text a local model reads at most, about: .15 s of a processor."""
_TOKEN: Final = re.compile(r"[a-zA-ZÀ-ɏ]{1,7}|\d{1,3}|\S")
"""About what a model takes for one token: a short Latin word, a few digits, a letter of another script, a sign."""


def import_quietly() -> Any:
    """Import onnxruntime without its reports, and return it.

    numpy is imported first: the C code of onnxruntime imports a part of it, which breaks numpy for the process if
    another thread is importing it at that moment. The variable stays set for child processes.

    Raises:
        ImportError: It is not installed.
    """
    came_first = "onnxruntime" in sys.modules and not is_opted_out()
    opt_out()
    import numpy  # noqa: F401, ICN001
    import onnxruntime  # not before the first text is embedded

    onnxruntime.disable_telemetry_events()
    if came_first and _version(onnxruntime.__version__) >= _REPORTS_FROM:
        _problems.add(_TOO_LATE)
    return onnxruntime


def release_free_memory() -> None:
    """Return freed memory to the system where the C library keeps it.

    Loading MiniLM leaves 70 MB of freed memory with glibc.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def opt_out() -> None:
    """Set the opt-out for later imports of onnxruntime."""
    if not is_opted_out():
        os.environ[OPT_OUT] = "1"
    os.environ.setdefault(_OTHER_NAME, "1")


def is_opted_out() -> bool:
    """Return True if the environment holds the opt-out."""
    return os.environ.get(OPT_OUT, "").casefold() in _OPTED_OUT


def reports() -> str | None:
    """Explain to people why onnxruntime may still report, or return None."""
    return next(iter(_problems), None)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())


class _ForeignCodeGate:
    """Counter of threads inside foreign code."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset the count.

        A forked child has none of its parent's threads and cannot wait for their locks.
        """
        self._change = threading.Condition()
        self._threads = 0
        self._is_ending = False

    @contextlib.contextmanager
    def foreign_code(self) -> Iterator[None]:
        """Delay the end of the interpreter until this block ends.

        Raises:
            EmbeddingError: The interpreter ends.
        """
        with self._change:
            if self._is_ending:
                raise EmbeddingError("The program is ending; nothing is embedded any longer.", code="ending")
            self._threads += 1
        try:
            yield
        finally:
            with self._change:
                self._threads -= 1
                self._change.notify_all()

    def end(self) -> None:
        """Admit no further thread, and wait until all have left."""
        with self._change:
            self._is_ending = True
        while True:
            with contextlib.suppress(KeyboardInterrupt), self._change:  # or the impatience of a person aborts us
                self._change.wait_for(lambda: not self._threads)
                return


_inside = _ForeignCodeGate()


foreign_code: Final = _inside.foreign_code


atexit.register(_inside.end)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_inside.reset)


def estimate_length(text: str) -> int:
    """Estimate the number of tokens of a text, without a tokenizer."""
    return len(_TOKEN.findall(text))


def pieces(texts: Sequence[str], lengths: Sequence[int] = ()) -> Iterator[list[int]]:
    """Yield the positions of texts to embed together, shortest first.

    Batches are small, so that a caller can stop soon.

    Args:
        texts: Texts to embed.
        lengths: Token counts of the texts, which reduce padding; estimated if omitted.
    """
    lengths = lengths or list(map(estimate_length, texts))
    sizes = [min(_OF_ONE_TEXT, len(text.encode("utf-8", "replace"))) for text in texts]
    piece: list[int] = []
    size = 0
    for place in sorted(range(len(texts)), key=lengths.__getitem__):
        if piece and (len(piece) == _TEXTS or size + sizes[place] > _BYTES):
            yield piece
            piece, size = [], 0
        piece.append(place)
        size += sizes[place]
    if piece:
        yield piece
