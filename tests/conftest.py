"""What every test gets: a home of its own, a clock that stands still, and hypothesis without deadlines or files."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from agent_memory.embeddings import PROVIDERS
from agent_memory.encryption import keys
from agent_memory.integrations.amplifier import session as host_session
from agent_memory.store import memory_storage
from tests.support import FrozenClock

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

TESTS = Path(__file__).parent

pytest.register_assert_rewrite("tests.contract.memory_storage", "tests.contract.memory_search")

# A shell that starts tests in the background has them ignore Ctrl-C; processes that tests start would inherit that, and
# never end by it.
signal.signal(signal.SIGINT, signal.default_int_handler)

MEMORY_DISK = Path("/dev/shm")
NEEDED_BYTES = 4 << 30


def has_memory_disk() -> bool:
    """Return True if a disk in memory can hold what the tests write; a container may have one of 64 MB."""
    if not MEMORY_DISK.is_dir() or not os.access(MEMORY_DISK, os.W_OK):
        return False
    is_executable = not os.statvfs(MEMORY_DISK).f_flag & os.ST_NOEXEC
    return is_executable and shutil.disk_usage(MEMORY_DISK).free > NEEDED_BYTES


if has_memory_disk():  # thousands of tests wait for syncs of real files; nothing here loses power
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_DISK))
    tempfile.tempdir = str(MEMORY_DISK)  # for folders of databases and of property tests

hypothesis.settings.register_profile(
    "agent-memory",
    deadline=None,
    database=None,
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "50")),
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)
hypothesis.settings.load_profile("agent-memory")


# A passphrase takes 0.3 s of CPU: new key files take less here, and those of fixtures are stretched once a process.
keys.COST = {"n": 2, "r": 1, "p": 1}
keys.PersonKey.stretch = cache(keys.PersonKey.stretch)  # type: ignore[method-assign]


_DEEP = (TESTS / "concurrency", TESTS / "power", TESTS / "unit" / "benchmarks")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave modules and collected tests out of garbage collection, which took a sixth of the CPU."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what takes many processes or much time: `make test` leaves it out, `make test-deep` runs it."""
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in _DEEP):
            item.add_marker(pytest.mark.deep)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty folder the home: nothing a test writes by default may land in the real one."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture(autouse=True)
def no_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the sessions of other tests: one that was not released would share its taint with a namesake."""
    for registry in ("_SESSIONS", "_ROOTS"):
        monkeypatch.setattr(host_session, registry, {})


@pytest.fixture(scope="session", autouse=True)
def ended_children() -> Iterator[None]:
    """Wait at the end for detached children, which end by themselves."""
    yield
    for child in memory_storage.DETACHED_CHILDREN:
        child.wait()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the path of a storage root that does not exist yet."""
    return tmp_path / "memory"


@pytest.fixture
def clock() -> FrozenClock:
    """Return a clock that moves only when told to."""
    return FrozenClock()


@pytest.fixture
def open_umask() -> Iterator[None]:
    """Give new files every permission that their creator does not take away itself."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture(autouse=True)
def no_model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Search by words alone, as if the local model were not installed; `@pytest.mark.model` brings the real one."""
    if request.node.get_closest_marker("model") is None:
        monkeypatch.setitem(PROVIDERS, "local", replace(PROVIDERS["local"], needs=("a_package_that_is_not_installed",)))
