"""Where an agent's files lie, and that they never lie anywhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import ConfigurationError, StorageError, ValidationError
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, detect_storage, folder_of
from tests.support import memory_of, raises

if TYPE_CHECKING:
    from pathlib import Path


def test_the_agent_is_the_folder_and_naming_it_creates_nothing(root: Path) -> None:
    folder = folder_of("bob", root)
    assert (folder.agent_id, folder.path) == ("bob", root / "bob")
    assert {
        path.parent for path in (folder.journal, folder.scratchpad, folder.metadata, folder.vectors, folder.audit)
    } == {root / "bob"}
    assert not root.exists()


def test_the_default_root_is_in_the_home(home: Path) -> None:
    assert folder_of("bob").path == home / ".amplifier" / "memory" / "bob"
    assert FileStorage("bob").folder.path == home / ".amplifier" / "memory" / "bob"


def test_a_name_finds_its_folder_ignoring_case(root: Path) -> None:
    (root / "Bob").mkdir(parents=True)
    for name in ("bob", "BOB", "Bob"):
        assert folder_of(name, root).agent_id == "Bob"
    (root / "bob").mkdir()
    assert folder_of("bob", root).agent_id == "bob"


@pytest.mark.parametrize("name", ["../x", "a/b", "bob\n", "CON", "x" * 65, "", "b\0b", "_sessions"])
def test_a_name_that_leads_elsewhere_is_refused(root: Path, name: str) -> None:
    with pytest.raises(ValidationError):
        folder_of(name, root)
    with pytest.raises(ValueError, match="cannot be an agent's name"):
        detect_storage(name, root)


def test_a_link_inside_the_root_is_fine_and_one_out_of_it_or_to_another_agent_is_not(
    root: Path, tmp_path: Path
) -> None:
    (root / "_disk" / "bob").mkdir(parents=True)
    (root / "bob").symlink_to(root / "_disk" / "bob")
    assert folder_of("bob", root).agent_id == "bob"
    (root / "out").symlink_to(tmp_path)
    with raises(StorageError, "outside_root"):
        folder_of("out", root)
    (root / "alice").mkdir()
    (root / "alias").symlink_to(root / "alice")
    with raises(StorageError, "symlink", match="is a link to that of agent 'alice'"):
        folder_of("alias", root)


@pytest.mark.parametrize("target", ["alice", "../elsewhere"])
async def test_a_folder_that_becomes_a_link_under_a_session_is_refused_like_by_a_new_one(
    root: Path, target: str
) -> None:
    bob = FileStorage("bob", root, settings=ServiceSettings(embedder="none"))
    await bob.store(memory_of("tea"))
    elsewhere = root / target
    elsewhere.mkdir()
    (elsewhere / "memories.yaml").write_bytes((root / "bob" / "memories.yaml").read_bytes())
    before = sorted((each.name, each.stat().st_mtime_ns) for each in elsewhere.iterdir())
    (root / "bob").rename(root / "_bob")
    (root / "bob").symlink_to(elsewhere)
    code = "symlink" if target == "alice" else "outside_root"
    for attempt in (bob.list_recent(), bob.store(memory_of("coffee")), bob.search("tea"), bob.compact()):
        with raises(StorageError, code):
            await attempt
    assert sorted((each.name, each.stat().st_mtime_ns) for each in elsewhere.iterdir()) == before
    (root / "bob").unlink()
    (root / "_bob").rename(root / "bob")
    await bob.store(memory_of("coffee"))
    assert await bob.count() == 2
    await bob.close()


async def test_links_in_a_circle_are_a_clear_error(root: Path) -> None:
    root.mkdir()
    (root / "loop").symlink_to(root / "loop")
    with pytest.raises(StorageError):
        await FileStorage("loop", root).store(memory_of("tea", agent_id="loop"))
    with pytest.raises(StorageError):
        await FileStorage("bob", root / "loop").store(memory_of("tea"))


def test_files_in_the_way_are_told(root: Path, tmp_path: Path) -> None:
    root.mkdir()
    (root / "bob").write_text("x")
    with pytest.raises(StorageError, match="is a file"):
        folder_of("bob", root)
    with pytest.raises(StorageError, match="not a folder"):
        folder_of("bob", root / "bob")


def test_the_backend_follows_the_settings(root: Path) -> None:
    assert isinstance(detect_storage("bob", root), FileStorage)
    for backend in ("auto", "file"):
        assert isinstance(detect_storage("bob", root, settings=ServiceSettings(backend=backend)), FileStorage)
    chosen = ServiceSettings(storage_root=str(root))
    assert detect_storage("bob", settings=chosen).agent_id == "bob"


def test_a_server_needs_an_address(root: Path) -> None:
    with pytest.raises(ConfigurationError):
        detect_storage("bob", root, settings=ServiceSettings(backend="server"))
