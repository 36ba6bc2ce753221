"""Run one reader alone in a child process with limits.

The function and its arguments come in on the standard input, its result goes out on the standard output. The child
opens no memory and needs no key; it has none in its environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError
from agent_memory.files.children import keep_to_itself

if TYPE_CHECKING:
    from collections.abc import Callable

CPU_SECONDS: Final = 60
MEMORY_BYTES: Final = 512 << 20
"""Beyond what the interpreter and the package have mapped when the reader begins."""
_KEPT: Final = frozenset(
    {"HOME", "LANG", "LANGUAGE", "PATH", "PYTHONHOME", "SYSTEMROOT", "TMPDIR", "TZ", "VIRTUAL_ENV"}
)
"""Names in the child's environment, with those that begin with `LC_`: none of them is of a key."""
_REASONS: Final = {-signal.SIGXCPU: "time", -signal.SIGKILL: "killed", -signal.SIGSEGV: "crashed"}


class ReaderDiedError(AgentMemoryError):
    """A reader that ran alone died, or raised.

    Attributes:
        reason: Why, in one word: `killed`, `memory`, `time`, or the class of what it raised.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"A text could not be read: {reason}.", code="reader_died")
        self.reason = reason


async def read_alone(reader: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Return the result of a reader that runs alone.

    Args:
        reader: A function of a module, which the child imports.
        *args: Its arguments, which can be pickled.
        **kwargs: The same, by name.

    Raises:
        ReaderDiedError: It died, raised, or is not a function of a module.
    """
    job = _encode_job(reader, args, kwargs)
    try:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", __name__,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=make_environment(),
            start_new_session=True,  # Ctrl-C in a terminal is meant for the agent
        )  # fmt: skip
    except (OSError, RuntimeError) as error:
        raise ReaderDiedError("not_started") from error
    try:
        answer, _ = await child.communicate(job)
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    return _decode_answer(child.returncode or 0, answer)


def wait_for_reader(reader: Callable[..., Any], /, *args: Any) -> Any:
    """Return the result of a reader that runs alone; blocks until then.

    Args:
        reader: A function of a module, which the child imports.
        *args: Its arguments, which can be pickled.

    Raises:
        ReaderDiedError: It died, raised, or is not a function of a module.
    """
    try:
        child = subprocess.run(  # noqa: S603 - this interpreter, with a module of ours
            [sys.executable, "-P", "-m", __name__],
            input=_encode_job(reader, args, {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=make_environment(),
            start_new_session=True,
            check=False,
        )
    except OSError as error:
        raise ReaderDiedError("not_started") from error
    return _decode_answer(child.returncode, child.stdout)


def _encode_job(reader: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    try:
        return pickle.dumps(list(filter(None, sys.path))) + pickle.dumps((reader, args, kwargs))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ReaderDiedError(type(error).__name__) from error


def _decode_answer(code: int, answer: bytes) -> Any:
    if code != 0 or not answer:
        raise ReaderDiedError(_REASONS.get(code, f"ended_with_{code}"))
    is_read, value = pickle.loads(answer)  # noqa: S301 - written by our own module, of a function that we named
    if not is_read:
        raise ReaderDiedError("memory" if value == "MemoryError" else str(value))
    return value


def make_environment() -> dict[str, str]:
    """Return the environment of a child, without keys."""
    inherited = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith("LC_")}
    places = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**inherited, "PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}


def main() -> None:
    """Run the job on the standard input; write its result."""
    keep_to_itself()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a reader prints is not its result
    sys.path[:] = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own process wrote it
    try:
        reader, args, kwargs = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own process wrote it
        _limit()
        answer = True, reader(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - whatever it raises is the answer, and the parent reports it
        answer = False, type(error).__name__
    pickle.dump(answer, answers)
    answers.close()


def _limit() -> None:
    """Limit CPU time and memory of this process."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(spent.ru_utime + spent.ru_stime) + CPU_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    mapped = 0
    with contextlib.suppress(OSError):
        mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    if mapped:  # elsewhere the limit would count what the system maps for every process
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY_BYTES,) * 2)


if __name__ == "__main__":
    main()
