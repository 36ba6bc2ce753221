"""Write the book: `python -m examples.book [--folder FOLDER] [--processes 4] [--kill]`."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import yaml

from agent_memory.workspace import Workspace
from examples.book.agents import AGENTS, HERE, lines

_DECLARATION: Final = HERE / "book.yaml"
_LEASE_SECONDS: Final = 3
"""Of a claim where a process is killed: so long the others wait for its step. A session takes less than one."""
_KILLED_AFTER: Final = 4
"""Steps after which a process is killed, in the middle of its next one."""
_POLL: Final = 0.02
_BOOKS: Final = {"book_en": "book.en.md", "book_es": "book.es.md"}


def main() -> int:
    """Begin a workspace, have the processes work on it, and show what became of it."""
    parser = argparse.ArgumentParser(prog="python -m examples.book", description="A book that agents write together.")
    parser.add_argument("--folder", type=Path, help="an empty folder for the workspace (default: a temporary one)")
    parser.add_argument("--processes", type=int, default=4, help="how many work at the same time")
    parser.add_argument("--kill", action="store_true", help="kill one of them on the way")
    args = parser.parse_args()
    folder = (args.folder or Path(tempfile.mkdtemp(prefix="agent-memory-book-"))).resolve()
    begun = time.perf_counter()
    begin(folder, seconds=_LEASE_SECONDS if args.kill else None)
    print(f"{len(AGENTS)} agents, {len(lines())} chapters, {args.processes} processes; each step is a session.\n")
    if not run(folder, args.processes, kill=args.kill):
        print("\nA process failed; what it said is above. The workspace is as the last finished step left it:")
        print(f"  {folder}")
        return 1
    print(f"\nAll done after {time.perf_counter() - begun:.1f} s.\n", flush=True)
    show(folder)
    if args.folder is None:
        shutil.rmtree(folder)
        print("These files are removed now. To keep them:  python -m examples.book --folder FOLDER")
    return 0


def begin(folder: Path, seconds: float | None = None) -> None:
    """Make the workspace and save its chapters.

    Args:
        folder: Where; empty, or not there yet.
        seconds: How long a claim lasts; as `book.yaml` says when omitted.
    """
    declaration = _DECLARATION
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as other:
        if seconds is not None:
            declared = yaml.safe_load(_DECLARATION.read_text("utf-8"))
            for phase in declared["phases"]:
                phase["lease_seconds"] = seconds
            declaration = Path(other) / _DECLARATION.name
            declaration.write_text(yaml.safe_dump(declared, sort_keys=False), encoding="utf-8")
        workspace = Workspace.create(folder, declaration)
    for chapter in lines():
        workspace.tables.save("chapters", {"chapter_number": chapter})
    workspace.tables.save("book_context", {"key": "style_guide", "value": "Plain words, short sentences."})
    workspace.close()


def run(folder: Path, processes: int, *, kill: bool = False) -> bool:
    """Have so many processes work until all is done; tell whether all ended well, but for the one that is killed."""
    command = [sys.executable, "-m", "examples.book.worker", str(folder)]
    started = [subprocess.Popen([*command, str(number)], cwd=HERE.parents[1]) for number in range(1, processes + 1)]  # noqa: S603
    victim = started[-1] if kill else None
    if victim is not None:
        _wait_for(folder, _KILLED_AFTER)
        victim.kill()
        print(f"  process {processes} was killed; its claim ends within {_LEASE_SECONDS} seconds.", flush=True)
    return all(each.wait() == 0 for each in started if each is not victim) and (victim is None or victim.wait() != 0)


def _wait_for(folder: Path, steps: int) -> None:
    workspace = Workspace.open(folder)
    while sum(step.status == "done" for step in workspace.steps.all()) < steps:
        time.sleep(_POLL)
    workspace.close()


def show(folder: Path) -> None:
    """Print the board and where things are; write both books beside the workspace."""
    subprocess.run([sys.executable, "-m", "agent_memory.cli", "workspace", "status"], cwd=folder, check=True)
    workspace = Workspace.open(folder)
    for key, name in _BOOKS.items():
        row = workspace.tables.get("book_context", key)
        (folder / name).write_text(f"{row['value']}\n", encoding="utf-8")
    retried = workspace.tables.many("retry_log").rows
    proposals = workspace.tables.proposals("glossary")
    snapshots = [each.name for each in workspace.snapshots.all()]
    workspace.close()
    print()
    for each in retried:
        print(f"  tried again   {each['agent_name']}, chapter {each['chapter']}: {each['failure_message']}")
    for each in proposals:
        print(f"  proposed      {each['term']}: {each['definition']} (another chapter defined it before)")
    print(f"  snapshots     {', '.join(snapshots)}")
    print(
        f"  diagrams      {', '.join(str(path.relative_to(folder)) for path in sorted(folder.glob('diagrams/*.svg')))}"
    )
    print(f"  books         {', '.join(_BOOKS.values())} in {folder}\n")


if __name__ == "__main__":
    sys.exit(main())
