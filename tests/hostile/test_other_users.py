"""Other users of the machine: what is made is its owner's alone, whatever the umask; links and cores lead nowhere."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from typer.testing import CliRunner

from agent_memory.care.checks.examination import examine
from agent_memory.cli.app import build
from agent_memory.errors import StorageError
from agent_memory.files.layout import AgentFolder
from agent_memory.memory import open_service
from agent_memory.memory.inbox_access import opened_inbox
from agent_memory.models import MEMORY, Observation
from agent_memory.settings import ServiceSettings
from agent_memory.store.segment_builder import seal_up
from agent_memory.workspace import Caller, Workspace
from tests.hostile.attacks import attack
from tests.hostile.trouble import need_root
from tests.support import NOON
from tests.unit.workspace.conftest import BOOK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Run = Callable[..., str]

SOURCES = Path(__file__).parents[2] / "src" / "agent_memory"
TALK = '{"role": "user", "name": "Ann Miller", "content": "Ann Miller moved to the Hamburg office in May."}\n'
NOBODY = 65534
LONG = "# Handbook\n\n" + "The office has a printer. " * 800


@pytest.fixture(params=[0o000, 0o022, 0o077], ids="{:03o}".format)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Give new files what a user of this umask gives them."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def run(root: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return `agent-memory` for this root and the agent bob; each call returns what is printed on stdout."""
    monkeypatch.setenv("AGENT_MEMORY_ROOT", str(root))
    app, runner = build(), CliRunner()

    def invoke(*arguments: str, code: int | None = 0) -> str:
        result = runner.invoke(app, list(arguments), prog_name="agent-memory", catch_exceptions=False)
        assert code is None or result.exit_code == code, result.output
        return result.stdout

    return invoke


def stored(run: Run, text: str) -> str:
    return str(json.loads(run("store", "-a", "bob", text, "--json"))["memory_id"])


async def hold(root: Path) -> None:
    """Have something wait in bob's inbox."""
    service = open_service("bob", ServiceSettings(storage_root=str(root), embedder="none"))
    try:
        async with opened_inbox(service) as inbox:
            held = await inbox.hold(
                [
                    Observation(content=text, category="note", confidence=0.9)
                    for text in ("The door is green.", "Bo has a dog.")
                ]
            )
            await inbox.reject(held.ids[:1])
    finally:
        await service.close()


def live(run: Run, root: Path, out: Path) -> None:
    """Do what makes files, of every sort there is."""
    talk, long = out / "talk.jsonl", out / "long.md"
    talk.write_text(TALK)
    long.write_text(LONG)
    ids = [stored(run, f"{text} is in the ledger of Kestrel.") for text in ("Tea", "Coffee", "A badge", "Milk")]
    run("ingest", str(talk), str(long), "-a", "bob")
    run("archive", "add", ids[1], "-a", "bob")
    asyncio.run(hold(root))
    run("backup", "create", "-a", "bob")
    run("purge", ids[2], "--yes", "-a", "bob")
    seal_up(AgentFolder(root / "bob"), MEMORY, None, least=1)
    for name in ("all.jsonl", "all.yaml", "all.zip"):
        run("export", str(out / name), "-a", "bob")
    run("stats", "--plot", str(out / "plot.svg"), "-a", "bob")
    run("agents", "copy", "bob", "eve")
    with (root / "bob" / "memories.yaml").open("ab") as file:
        file.write(b"--- {torn\n")
    run("doctor", "-a", "bob", "--repair", code=None)
    (root / "bob" / "scratchpad.yaml").write_text("{broken")
    run("list", "-a", "bob")


def work(run: Run, out: Path) -> None:
    """Do what makes files of a workspace."""
    declaration, place = out / "declared.yaml", out / "place"
    declaration.write_text(BOOK)
    run("workspace", "init", str(declaration), "--at", str(place))
    workspace = Workspace.open(place)
    claim = workspace.steps.claim("worker")
    workspace.tables.save("chapters", {"number": 1, "title": "One"}, Caller("librarian", claim=claim))
    workspace.close()
    prompts = place / "prompts"
    prompts.mkdir()
    (prompts / "chapter.md").write_text("Once upon a time.")
    run("workspace", "snapshot", "first", "--at", str(place))
    shutil.rmtree(prompts)
    run("workspace", "restore", "first", "--yes", "--at", str(place))
    assert (prompts / "chapter.md").read_text() == "Once upon a time."
    for suffix in ("jsonl", "md", "csv", "db"):
        run("workspace", "export", str(out / f"rows.{suffix}"), "--at", str(place))


def too_open(folder: Path, given: set[str]) -> list[str]:
    """Return what others may read, change or look into."""
    return [
        f"{path.relative_to(folder)} {stat.S_IMODE(path.lstat().st_mode):04o}"
        for path in sorted(folder.rglob("*"))
        if path.lstat().st_mode & 0o077 and path.name not in given
    ]


@attack("umask")
def test_every_file_and_folder_that_is_made_is_its_owners_alone(
    run: Run, root: Path, tmp_path: Path, umask: int
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    live(run, root, out)
    work(run, out)
    made = {path.name for path in root.rglob("*")}
    assert {
        "memories.yaml", "archive.yaml", "inbox.yaml", "knowledge.yaml", "episodes.yaml", "entities.yaml", "tasks.yaml",
        "purged.yaml", "purge.key", "scratchpad.yaml", "events.jsonl", "blobs", "topics", "derived", "segments.json",
        ".lock", "tasks.lock", "_backups",
    } <= made  # fmt: skip
    assert any(name.startswith("scratchpad.broken") for name in made)
    assert {"all.jsonl", "all.yaml", "all.zip", "plot.svg", "place"} <= {path.name for path in out.iterdir()}
    assert too_open(root.parent, {"home", "out", "talk.jsonl", "long.md", "declared.yaml"}) == []


# -- links ------------------------------------------------------------------------------------------------------------


LINKED_FILES = (
    "inbox.yaml", "archive.yaml", "knowledge.yaml", "episodes.yaml", "entities.yaml", "tasks.yaml", "tasks.lock",
    "purged.yaml", "purge.key", "scratchpad.yaml", "events.jsonl", "metadata.json", "shortlist.json",
)  # fmt: skip


@pytest.mark.parametrize("name", LINKED_FILES)
@attack("linked-file")
def test_nothing_is_written_through_a_linked_file(run: Run, root: Path, tmp_path: Path, name: str) -> None:
    first = stored(run, "Tea is in the ledger.")
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (root / "bob" / name).unlink(missing_ok=True)
    (root / "bob" / name).symlink_to(victim)
    talk = tmp_path / "talk.jsonl"
    talk.write_text(TALK)
    for arguments in (
        ("store", "Coffee is in the kitchen."), ("ingest", str(talk)), ("archive", "add", first), ("promote", first),
        ("inbox",), ("purge", first, "--yes"), ("doctor", "--repair"), ("compact",),
    ):  # fmt: skip
        run(*arguments, "-a", "bob", code=None)
    assert victim.read_bytes() == b"precious"


@pytest.mark.parametrize("name", ["bob/blobs", "bob/topics", "bob/derived", "_backups"])
@attack("linked-folder")
def test_nothing_is_written_into_a_folder_that_another_user_linked(
    run: Run, root: Path, tmp_path: Path, name: str
) -> None:
    need_root()
    stored(run, "Tea is in the ledger.")
    victim, long = tmp_path / "victim", tmp_path / "long.md"
    victim.mkdir()
    long.write_text(LONG)
    (root / name).symlink_to(victim)
    os.lchown(root / name, NOBODY, NOBODY)
    for arguments in (("ingest", str(long)), ("backup", "create"), ("doctor", "--repair"), ("store", "Coffee is out.")):
        run(*arguments, "-a", "bob", code=None)
    with contextlib.suppress(StorageError):
        seal_up(AgentFolder(root / "bob"), MEMORY, None, least=1)
    assert [path.name for path in victim.iterdir()] == []


def test_backups_may_lie_where_ones_own_link_leads(run: Run, root: Path, tmp_path: Path) -> None:
    stored(run, "Tea is in the ledger.")
    (tmp_path / "disk").mkdir()
    (root / "_backups").symlink_to(tmp_path / "disk")
    run("backup", "create", "-a", "bob")
    (made,) = (tmp_path / "disk").iterdir()
    assert made.stat().st_mode & 0o777 == 0o600


@attack("purge-behind-a-link")
def test_a_purge_does_not_claim_what_lies_behind_a_link(run: Run, root: Path, tmp_path: Path) -> None:
    first = stored(run, "The badge of Ann Miller is seventeen.")
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "badges.md").write_text("The badge of Ann Miller is seventeen.")
    (root / "bob" / "topics").symlink_to(pages)
    receipt = json.loads(run("purge", first, "--yes", "-a", "bob", "--json", code=1))
    assert receipt["failed"] == ["topics is a link; what lies behind it was neither searched nor changed."]


@pytest.mark.parametrize(("mode", "owner", "is_open"), [(0o700, 0, False), (0o755, 0, False), (0o777, 0, True),
    (0o1777, 0, True), (0o720, 0, True), (0o700, 65534, True)])  # fmt: skip
@attack("swapped-folder")
def test_the_doctor_tells_who_else_can_swap_the_folders_of_agents(
    run: Run, root: Path, mode: int, owner: int, is_open: bool
) -> None:
    if owner:
        need_root()
    stored(run, "Tea is in the ledger.")
    root.chmod(mode)
    if owner:
        os.chown(root, owner, owner)
    found = {finding.code for finding in examine(root, now=NOON).findings}
    assert ("home_open" in found) is is_open


# -- children ---------------------------------------------------------------------------------------------------------


CHILD = """
import os, resource, signal
resource.setrlimit(resource.RLIMIT_CORE, {before})
from agent_memory.files.processes import keep_to_itself
keep_to_itself()
print(oct(os.umask(0)), resource.getrlimit(resource.RLIMIT_CORE)[0] <= 1, flush=True)
os.abort()
"""


@attack("core-file")
def test_a_child_leaves_no_core_and_gives_others_no_right(tmp_path: Path) -> None:
    hard = "resource.getrlimit(resource.RLIMIT_CORE)[1]"
    for before in (f"({hard}, {hard})", "(0, 0)"):
        code = CHILD.replace("{before}", before)
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=tmp_path)
        assert child.stdout is not None
        said = child.stdout.read()
        child.stdout.close()
        _, status = os.waitpid(child.pid, 0)
        child.returncode = 0
        assert said.split() == [b"0o77", b"True"]
        assert os.WTERMSIG(status) == signal.SIGABRT
        assert not os.WCOREDUMP(status)
    assert list(tmp_path.glob("core*")) == []


@attack("started-program")
def test_each_program_that_a_process_of_ours_starts_keeps_to_itself() -> None:
    programs = {}
    for path in SOURCES.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if path.is_relative_to(SOURCES / "cli") or not any(_is_main(each) for each in tree.body):
            continue
        main = next(each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == "main")
        programs[path.name] = {
            each.func.id for each in ast.walk(main) if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
        }
    assert len(programs) >= 3
    assert [name for name, called in programs.items() if "keep_to_itself" not in called] == []


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)


# -- drafts -----------------------------------------------------------------------------------------------------------


@attack("copy-of-an-editor")
def test_no_copy_of_what_was_edited_stays_where_editors_keep_one(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_umask: None
) -> None:
    from agent_memory.cli import drafts

    agent_folder = tmp_path / "memory" / "bob"
    agent_folder.mkdir(parents=True)
    settings = ServiceSettings(storage_root=str(agent_folder.parent))
    command = SimpleNamespace(service=SimpleNamespace(agent_id="bob", settings=settings))
    seen: list[Any] = []

    def edit(path: Path) -> None:
        path.with_name(f"{path.name}~").write_text(path.read_text())
        path.write_text("Green.\n")
        seen.append((path.parent.stat().st_mode & 0o777, path.stat().st_mode & 0o077, path.suffix))

    monkeypatch.setattr(drafts, "check_terminal", lambda: None)
    monkeypatch.setattr(drafts, "open_editor", edit)
    assert asyncio.run(drafts.edited_text(cast("Any", command), "cnd-000000000000", "Blue.")) == "Green.\n"
    assert seen == [(0o700, 0, ".yaml")]
    assert list(agent_folder.rglob("*")) == []
