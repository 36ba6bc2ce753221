"""Draft files in the agent's folder, edited in $VISUAL or $EDITOR."""

import asyncio
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.cli.runtime import AgentContext
from agent_memory.errors import ConfigurationError, ValidationError
from agent_memory.files.atomic import make_draft_folder, open_private, translated, unlock_and_close
from agent_memory.files.layout import folder_of
from agent_memory.files.processes import environment_without_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.memory import MemoryService

_FALLBACK_EDITORS: Final = ("sensible-editor", "nano", "vi", "notepad")


@contextlib.contextmanager
def open_draft(service: "MemoryService", name: str, text: str) -> "Iterator[Path]":
    """Write a private draft file, removed at the block's end.

    It has its own folder below the agent's, so that other files of the editor are removed, too. The next
    open of the agent removes what a killed process left. By its suffix, an editor knows that it is YAML.
    """
    agent_folder = folder_of(service.agent_id, service.settings.storage_root).path
    with translated(agent_folder, "write a draft into"):
        folder, lock = make_draft_folder(agent_folder)
    path = folder / f"{name}.yaml"
    try:
        with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w", encoding="utf-8") as file:
            file.write(text)
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        unlock_and_close(lock)


def check_terminal() -> None:
    """Refuse to open an editor without a terminal to type into.

    Raises:
        ValidationError: No terminal is available.
    """
    if not (sys.stdin.isatty() and (sys.stdout.isatty() or sys.stderr.isatty())):
        raise ValidationError(
            "An editor needs a terminal. Nothing was changed.",
            code="usage",
            recovery="Use `agent-memory update ID --content TEXT`, which needs none.",
        )


async def edited_text(run: AgentContext, name: str, text: str) -> str:
    """Return a text after a person changed it in an editor.

    Args:
        run: Command that asks.
        name: Name of the draft's file, without its suffix.
        text: Text to begin with.

    Raises:
        ValidationError: No terminal is available.
        ConfigurationError: The editor could not be opened, or failed.
    """
    check_terminal()
    with open_draft(run.service, name, f"{text}\n") as path:
        await asyncio.to_thread(open_editor, path)
        return path.read_text(encoding="utf-8", errors="replace")


def open_editor(path: Path) -> None:
    """Open a draft in the editor and wait until it is closed.

    The environment of the editor has none of our keys.

    Raises:
        ConfigurationError: No editor was found, it cannot be started, or it failed.
    """
    editor = _editor()
    # Where results go to a pipe, the editor talks to the terminal by stderr.
    stdout = None if sys.stdout.isatty() else sys.stderr.fileno()
    try:
        ended = subprocess.run(  # noqa: S603 - the user's own editor
            [*editor, str(path)], check=False, stdout=stdout, env=environment_without_keys()
        )
    except OSError as error:
        raise ConfigurationError(
            f"The editor {editor[0]!r} could not be started: {error.strerror or error}.",
            code="no_editor",
            recovery="Set the environment variable VISUAL or EDITOR to one that is installed.",
        ) from None
    if ended.returncode:
        raise ConfigurationError(
            f"The editor ended with status {ended.returncode}; nothing was changed.",
            code="editor_failed",
            recovery="Try again, or set VISUAL or EDITOR to another editor.",
        )


def _editor() -> list[str]:
    named = (os.environ.get("VISUAL") or os.environ.get("EDITOR") or "").strip()
    named = named or next(filter(shutil.which, _FALLBACK_EDITORS), "")
    if not named:
        raise ConfigurationError(
            "No editor is set.", code="no_editor", recovery="Set the environment variable VISUAL or EDITOR."
        )
    try:
        return shlex.split(named)
    except ValueError:  # a path with a quote in it
        return [named]
