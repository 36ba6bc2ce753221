"""Pytest plugin that puts our adapters in place of the classes that other projects' suites test.

`docs/maintainers/foreign-suites.md` says how to run these suites. A replacement only translates the arguments of the
constructor, and shows the files of the memory tool where its suite reads them.
"""

from __future__ import annotations

import asyncio
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from agent_memory.memory.verbatim_storage import VerbatimStorage

if TYPE_CHECKING:
    from collections.abc import Callable

_DISK: Final = "reads folders and links of the reference class on the disk"
_DATABASE: Final = "reads or breaks the SQLite connection of the reference class"
NOT_APPLICABLE: Final = {
    "test_mkdir_parents_not_world_writable_under_permissive_umask": _DISK,
    "test_validate_path_returns_resolved_path_not_symlink_target": _DISK,
    "test_symlink_validation_reject_symlink_pointing_outside_memories": _DISK,
    "test_symlink_validation_reject_creating_files_through_symlink_pointing_outside": _DISK,
    "test_symlink_validation_reject_parent_directory_that_is_symlink_pointing_outside": _DISK,
    "test_sqlite_session_close_closes_worker_thread_connections": _DATABASE,
    "test_sqlite_session_pop_item_skips_corrupt_most_recent": _DATABASE,
    "test_sqlite_session_pop_item_returns_none_after_dropping_only_corrupt_rows": _DATABASE,
    "test_sqlite_session_get_items_limit_skips_corrupt_newest_rows": _DATABASE,
    "test_sqlite_session_get_items_session_settings_limit_skips_corrupt_rows": _DATABASE,
    "test_sqlite_session_file_lock_is_shared_across_instances": _DATABASE,
    "test_sqlite_session_failed_add_items_releases_write_lock": _DATABASE,
    "test_sqlite_session_failed_clear_session_rolls_back": _DATABASE,
    "test_sqlite_session_failed_pop_item_releases_write_lock": _DATABASE,
    "test_sqlite_session_rollback_failure_evicts_connection": _DATABASE,
    "test_sqlite_session_close_retries_quarantined_connection": _DATABASE,
    "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome": _DATABASE,
}
"""Tests of the reference class alone, by name; they are skipped with the reason."""


def _make_root() -> Path:
    return Path(tempfile.mkdtemp(prefix="agent-memory-"))


def _write_files(root: Path) -> Path:
    """Write the files of the memory tool to a new folder; return it."""

    async def list_files() -> list[Any]:
        storage = VerbatimStorage("me", "anthropic", root)
        records = await storage.list_in(())
        await storage.close()
        return records

    folder = _make_root()
    with ThreadPoolExecutor(1) as pool:  # an event loop may run in this thread
        records = pool.submit(lambda: asyncio.run(list_files())).result()
    for record in records:
        path = folder.joinpath("memories", *record.namespace, record.key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(record.content.encode())
    return folder


def replace_anthropic() -> None:
    """Replace the memory tools on the local file system."""
    import anthropic.lib.tools._beta_builtin_memory_tool as module

    from agent_memory.integrations.anthropic_memory import AgentMemoryTool, AsyncAgentMemoryTool

    def make_class(base: Any) -> Any:
        def start(tool: Any, base_path: str) -> None:
            tool.root = Path(base_path)
            base.__init__(tool, root=base_path)

        return type(base.__name__, (base,), {"__init__": start, "base_path": property(lambda t: _write_files(t.root))})

    module.BetaLocalFilesystemMemoryTool = make_class(AgentMemoryTool)
    module.BetaAsyncLocalFilesystemMemoryTool = make_class(AsyncAgentMemoryTool)


def replace_langgraph() -> None:
    """Replace the store in memory."""
    import langgraph.store.memory as module

    from agent_memory.integrations.langgraph_store import AgentMemoryStore

    class InMemoryStore(AgentMemoryStore):
        def __init__(self, *, index: Any = None) -> None:
            super().__init__(root=_make_root(), index=index)

    module.InMemoryStore = InMemoryStore


def replace_agents() -> None:
    """Replace the session in SQLite."""
    import agents
    from agent_memory.integrations.openai_session import AgentMemorySession

    class SQLiteSession(AgentMemorySession):
        def __init__(self, session_id: str, db_path: Path | None = None, session_settings: Any = None) -> None:
            root = _make_root() if db_path is None else db_path.with_suffix(".agents")
            super().__init__(session_id, root=root, session_settings=session_settings)

    agents.SQLiteSession = SQLiteSession


_REPLACEMENTS: Final[dict[str, Callable[[], None]]] = {
    "anthropic": replace_anthropic,
    "langgraph": replace_langgraph,
    "agents": replace_agents,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the package."""
    parser.addoption("--replace", choices=list(_REPLACEMENTS), help="package whose reference class is replaced")


def pytest_configure(config: pytest.Config) -> None:
    """Replace the reference class before its suite is imported."""
    if package := config.getoption("--replace"):
        _REPLACEMENTS[package]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of the reference class alone."""
    for item in items:
        if reason := NOT_APPLICABLE.get(getattr(item, "originalname", item.name)):
            item.add_marker(pytest.mark.skip(reason=reason))
