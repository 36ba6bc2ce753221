"""Process identities, which show if a process of this machine has ended.

A PID alone is used again, and containers and clones share a host name. So a process is identified by the boot of its
machine, its PID namespace, its PID and its start time.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE: Final = Path("/proc/self/ns/pid")
_ENDED: Final = frozenset("ZX")
"""States of a process that has ended and was not waited for (man 5 proc)."""
_STATE, _START_TIME = 0, 19
"""Fields of /proc/PID/stat behind the name: the third, and the 22nd."""


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
