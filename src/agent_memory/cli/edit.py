"""The command edit: one memory as YAML in the user's editor, the difference through the write path."""

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from agent_memory.cli.formats import Prose, read_yaml, to_yaml
from agent_memory.cli.options import MemoryId, resolved
from agent_memory.cli.running import Run, exit_code
from agent_memory.cli.store import show_updated
from agent_memory.cli.text import minute
from agent_memory.errors import AgentMemoryError, ConfigurationError, ValidationError

if TYPE_CHECKING:
    from agent_memory.models import Memory

_EDITABLE: Final = (
    "content", "category", "tags", "pinned", "trust", "source", "confidence", "importance", "observed_at", "expires_at",
    "links", "supersedes", "metadata",
)  # fmt: skip
_ALWAYS_SHOWN: Final = ("content", "category", "tags", "pinned", "trust")
_FALLBACK_EDITORS: Final = ("sensible-editor", "nano", "vi", "notepad")
_HEADER: Final = (
    "{id}, stored {stored}. Change what you like, save and close; close unchanged to leave it as it is. "
    "A field taken out gets its default. Fields not set: {others}."
)
_HEADER_WIDTH: Final = 78


async def edit(run: Run, memory_id: MemoryId) -> None:
    """Change a memory in $VISUAL or $EDITOR, as YAML."""
    _check_terminal()
    (memory_id,) = await resolved(run.service, [memory_id])
    memory = await run.service.get(memory_id)
    original = render(memory)
    path = _write_draft(memory.id, original)
    try:
        await asyncio.to_thread(_open_editor, path)
        edited = path.read_text(encoding="utf-8", errors="surrogateescape")
        changes = difference(original, edited)
        if not changes:
            path.unlink()
            run.screen.document({"memory_id": memory.id, "changed": []})
            run.screen.show("Nothing was changed.")
            return
        updated = await run.service.update(memory.id, changes, run.caller)
    except (AgentMemoryError, OSError) as error:
        raise _kept(run, error, path, original) from None
    path.unlink()
    show_updated(run, updated)


def render(memory: "Memory") -> str:
    """Return what the editor shows: the fields a person may change, those at their default left out."""
    record = {**{name: getattr(memory, name) for name in _ALWAYS_SHOWN}, **memory.to_record()}
    shown: dict[str, Any] = {name: record[name] for name in _EDITABLE if name in record}
    others = ", ".join(name for name in _EDITABLE if name not in shown) or "none"
    header = _HEADER.format(id=memory.id, stored=minute(memory.timestamp), others=others)
    comment = textwrap.fill(header, _HEADER_WIDTH, initial_indent="# ", subsequent_indent="# ")
    return f"{comment}\n{to_yaml({**shown, 'content': Prose(memory.content)})}"


def difference(original: str, edited: str) -> dict[str, Any]:
    """Return the changed fields, None for one taken out.

    Raises:
        ValidationError: The edited text is no YAML mapping of known fields.
    """
    before, after = _parse(original), _parse(edited)
    unknown = [str(name) for name in after if name not in _EDITABLE]
    if unknown:
        raise ValidationError(f"These fields cannot be edited: {', '.join(unknown)}.")
    if after.get("content") is None:
        raise ValidationError("The content is gone.", recovery="To forget a memory there is `agent-memory forget`.")
    changed = [name for name in (*before, *after) if before.get(name) != after.get(name)]
    return {name: after.get(name) for name in dict.fromkeys(changed)}


def _parse(text: str) -> dict[Any, Any]:
    value = read_yaml(text)
    if not isinstance(value, dict):
        raise ValidationError("The text is no YAML mapping of fields any more.")
    return value


def _write_draft(memory_id: str, text: str) -> Path:
    """Write a file that nobody else may read; its name tells an editor that it is YAML."""
    descriptor, name = tempfile.mkstemp(prefix=f"{memory_id}-", suffix=".yaml")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return Path(name)


def _check_terminal() -> None:
    """Refuse to open an editor that nobody could type into.

    Raises:
        ValidationError: There is no terminal.
    """
    if not (sys.stdin.isatty() and (sys.stdout.isatty() or sys.stderr.isatty())):
        raise ValidationError(
            "An editor needs a terminal, and there is none. Nothing was changed.",
            code="usage",
            recovery="Use `agent-memory update ID --content TEXT`, which needs none.",
        )


def _open_editor(path: Path) -> None:
    command = _editor()
    # Where results go to a pipe, the editor talks to the terminal by stderr.
    stdout = None if sys.stdout.isatty() else sys.stderr.fileno()
    try:
        ended = subprocess.run([*command, str(path)], check=False, stdout=stdout)  # noqa: S603 - the user's own editor
    except OSError as error:
        raise ConfigurationError(
            f"The editor {command[0]!r} could not be started: {error.strerror or error}.",
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
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    try:
        command = shlex.split(named) if named else []
    except ValueError:
        command = [named] if named else []
    found = next((name for name in _FALLBACK_EDITORS if shutil.which(name)), None)
    if not command and found is None:
        raise ConfigurationError(
            "There is no editor to open.", code="no_editor", recovery="Set the environment variable VISUAL or EDITOR."
        )
    return command or [str(found)]


def _kept(run: Run, error: AgentMemoryError | OSError, path: Path, original: str) -> Exception:
    """Say what failed and where the text is; a draft nobody touched is not worth keeping."""
    if path.exists() and path.read_bytes() == original.encode():
        path.unlink()
        return error
    if isinstance(error, AgentMemoryError):
        run.screen.error(error)
    run.screen.note(f"Your text is kept in {path}")
    return typer.Exit(exit_code(error)) if isinstance(error, AgentMemoryError) else error
