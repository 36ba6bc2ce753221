"""Processes: identity, child environment, isolated readers, work notes.

A PID alone is used again, and containers and clones share a host name. So a process is identified by the boot of its
machine, its PID namespace, its PID and its start time.

A reader that runs alone gets its function and arguments on standard input, and writes its result to standard output.
The child opens no memory and needs no key; its environment has none.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError
from agent_memory.files.atomic import open_private, read_file, unlock_and_close

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE: Final = Path("/proc/self/ns/pid")
_ENDED: Final = frozenset("ZX")
"""States of a process that ended and was not waited for (man 5 proc)."""
_STATE, _START_TIME = 0, 19
"""Fields of /proc/PID/stat behind the name: the third, and the 22nd."""
_key_variables: Final = {
    "AGENT_MEMORY_KEY",
    "AGENT_MEMORY_KEY_FILE",
    "AGENT_MEMORY_KEY_COMMAND",
    "AGENT_MEMORY_KEY_KEYRING",
    "QDRANT_API_KEY",
}
_OTHERS: Final = 0o077
_NO_CORE: Final = 1 if sys.platform == "linux" else 0
"""Bytes of a core file. Linux hands one to a program that `core_pattern` names also where the limit is none, and not
where it is one byte; a file of one byte it does not begin (fs/coredump.c, "RLIMIT_CORE is set to 1, aborting core")."""
CPU_SECONDS: Final = 60
MEMORY_BYTES: Final = 512 << 20
"""Bytes beyond what the interpreter and the package mapped before the reader began."""
_KEPT: Final = frozenset(
    {"HOME", "LANG", "LANGUAGE", "PATH", "PYTHONHOME", "SYSTEMROOT", "TMPDIR", "TZ", "VIRTUAL_ENV"}
)
"""Variables of the child's environment, with those that begin with `LC_`; none has a key."""
_REASONS: Final = {-signal.SIGXCPU: "time", -signal.SIGKILL: "killed", -signal.SIGSEGV: "crashed"}
_MOST_COUNTED: Final = 1_000
"""Records whose deaths are counted; the oldest are dropped."""
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process, different from every other on any machine.

    Attributes:
        machine: Boot and pid namespace.
        pid: Its number there.
        started: Its start time, as the system counts it.
    """

    machine: str
    pid: int
    started: str

    def to_json(self) -> str:
        """Return the identity as text."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> ProcessIdentity | None:
        """Return the identity that `to_json` wrote, None for any other text."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            return None

    def has_ended(self) -> bool:
        """Return True if the process has ended; False on another machine."""
        if self.machine != _machine():
            return False
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return True
        except PermissionError:
            pass  # it belongs to another user, and is there
        state = _state(self.pid)
        return state is not None and (state[0] in _ENDED or state[1] != self.started)


def get_own_identity() -> ProcessIdentity | None:
    """Return this process's identity; None if its start time is unknown."""
    return _identity(os.getpid())


@lru_cache(maxsize=1)
def _identity(pid: int) -> ProcessIdentity | None:
    machine, state = _machine(), _state(pid)
    return ProcessIdentity(machine, pid, state[1]) if machine is not None and state is not None else None


@lru_cache(maxsize=1)
def _machine() -> str | None:
    """Return the identity of this boot and pid namespace, None if unknown."""
    try:
        return f"{_BOOT.read_text(encoding='ascii').strip()} {_NAMESPACE.readlink()}"
    except OSError:
        return _run("sysctl", "-n", "kern.bootsessionuuid")  # macOS


def _state(pid: int) -> tuple[str, str] | None:
    """Return state and start time of a process; None if unreadable."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(") ")[2].split()
        return fields[_STATE], fields[_START_TIME]
    except OSError:
        listed = _run("ps", "-o", "state=,lstart=", "-p", str(pid))  # macOS
        state, _, started = (listed or "").partition(" ")
        return (state[:1], " ".join(started.split())) if started else None


def _run(*command: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - a program of the system, and no text of others
            command, capture_output=True, text=True, check=True, timeout=5, env={**os.environ, "LC_ALL": "C"}
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def add_key_variable(name: str) -> None:
    """Note that an environment variable of another name holds a key."""
    _key_variables.add(name)


def environment_without_keys() -> dict[str, str]:
    """Return this process's environment without our keys."""
    return {name: value for name, value in os.environ.items() if name not in _key_variables}


def keep_to_itself() -> None:
    """Restrict access to new files of this process, and disable core dumps.

    Its memory has texts and vectors of an agent, and core files stay wherever the system puts them.
    """
    os.umask(_OTHERS)
    with contextlib.suppress(OSError, ValueError):  # a limit of zero, which must not be raised, does nearly the same
        resource.setrlimit(resource.RLIMIT_CORE, (_NO_CORE, _NO_CORE))


def python_module(name: str) -> list[str]:
    """Return the command that runs a module of ours in this interpreter.

    With -P: the agent's working folder may hold any `json.py`, and must not be searched for modules.
    """
    return [sys.executable, "-P", "-m", name]


def child_environment() -> dict[str, str]:
    """Return the environment of a child process.

    This package can be imported, and numeric libraries have one thread.
    """
    return {**environment_without_keys(), **_get_python_variables()}


def _get_python_variables() -> dict[str, str]:
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


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
    return {**inherited, **_get_python_variables(), "MALLOC_ARENA_MAX": "2"}


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


class CurrentNote:
    """Note of the records being worked on, to count deaths against them.

    One small file, written in place and not synced: it outlives a killed process. After a power cut one more death may
    be needed until a record is read alone.

    Args:
        path: Path of the note; if its folder is missing, nothing is recorded.

    Attributes:
        deaths: Number of process deaths by ID of the record that was current.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._descriptor = path, -1
        self._owner = ""
        self._current: list[str] = []
        self.deaths: dict[str, int] = {}

    @contextlib.contextmanager
    def open_note(self) -> Iterator[None]:
        """Count earlier deaths; keep the note open for the block.

        If the block is cancelled, the work may continue in its thread: the note is removed when the process ends well.
        """
        self._owner = _name_process()
        self._count_deaths()
        try:
            self._descriptor = open_private(self._path, os.O_WRONLY | os.O_CREAT)
        except OSError:
            self._descriptor = -1  # a folder that cannot be written: a death is not counted
        try:
            self._write()
            yield
        finally:
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor >= 0:
                unlock_and_close(descriptor)
            if not self._current:
                self._remove_if_empty()

    @contextlib.contextmanager
    def naming(self, record_ids: Sequence[str]) -> Iterator[None]:
        """Name records as current; they stay named after a cancellation."""
        self.set_current(record_ids)
        try:
            yield
        except Exception:
            self.set_current(())
            raise
        except BaseException:
            atexit.register(self._end)
            raise
        self.set_current(())

    def set_current(self, record_ids: Sequence[str]) -> None:
        """Name the current records; none if empty."""
        self._current = list(record_ids)
        self._write()

    def forget_deaths(self) -> None:
        """Count no death against any record."""
        if self.deaths:
            self.deaths = {}
            self._write()

    def _count_deaths(self) -> None:
        note = _read_note(self._path)
        self.deaths = {str(identifier): int(count) for identifier, count in note.get("deaths", {}).items()}
        owner = ProcessIdentity.from_json(note.get("owner", ""))
        if owner is not None and owner.has_ended():
            for record_id in note.get("current", []):
                self.deaths[record_id] = self.deaths.get(record_id, 0) + 1
        self.deaths = dict([*self.deaths.items()][-_MOST_COUNTED:])
        self._current = []

    def _write(self) -> None:
        if self._descriptor < 0:
            return
        note = {"owner": self._owner, "current": self._current, "deaths": self.deaths}
        content = json.dumps(note).encode()
        with contextlib.suppress(OSError):  # a full disk: a death is not counted
            os.pwrite(self._descriptor, content, 0)
            os.ftruncate(self._descriptor, len(content))

    def _remove_if_empty(self) -> None:
        if not self.deaths:
            with contextlib.suppress(OSError):
                self._path.unlink()

    def _end(self) -> None:
        """Remove the note of cancelled work."""
        if _read_note(self._path).get("owner") == self._owner == _name_process():
            self._current = []
            with self.open_note():
                pass


def _name_process() -> str:
    """Return this process's name; empty if unknown, which counts no death."""
    identity = get_own_identity()
    return "" if identity is None else identity.to_json()


def _read_note(path: Path) -> dict[str, Any]:
    """Return the content of a note, empty if unreadable."""
    try:
        note, _ = _DECODER.raw_decode(read_file(path).decode())  # behind it may be the rest of a longer one
        return {
            "owner": str(note["owner"]),
            "current": [str(record_id) for record_id in note["current"]],
            "deaths": {str(record_id): int(count) for record_id, count in note["deaths"].items()},
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}
