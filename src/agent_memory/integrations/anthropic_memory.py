"""`AgentMemoryTool`: a backend of Anthropic's memory tool; needs the extra `anthropic`."""

from __future__ import annotations

import posixpath
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

from agent_memory.errors import AgentMemoryError, ConflictError
from agent_memory.memory.loop_thread import LoopThread
from agent_memory.memory.verbatim_storage import Names, VerbatimDraft, VerbatimStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
    from pathlib import Path

    from anthropic.types.beta import (
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )

    from agent_memory.models.verbatim import VerbatimRecord

AnswerT = TypeVar("AnswerT")
_ADAPTER: Final = "anthropic"
_ROOT: Final = "/memories"
_MAX_LINES: Final = 999_999
_NUMBER_WIDTH: Final = 6
_SNIPPET_LINES: Final = 2
_LEVELS: Final = 2
"""Levels of folders that a listing shows."""


class FilePath(NamedTuple):
    """Path of a file or folder of the tool.

    Attributes:
        text: Path as the model wrote it.
        names: Names below `/memories`; empty for this folder.
    """

    text: str
    names: Names

    @classmethod
    def parse(cls, text: str) -> FilePath:
        """Return a checked path.

        Raises:
            ToolError: It is outside `/memories`.
        """
        if text != _ROOT and not text.startswith(f"{_ROOT}/"):
            raise ToolError(f"Path must start with {_ROOT}, got: {text}")
        path = posixpath.normpath(text)
        if path != _ROOT and not path.startswith(f"{_ROOT}/"):
            raise ToolError(f"Path {text} would escape {_ROOT} directory")
        return cls(text, tuple(path.removeprefix(_ROOT).strip("/").split("/")) if path != _ROOT else ())

    def get_missing_error(self, advice: str = "") -> ToolError:
        """Return the error for a path without file or folder."""
        return ToolError(f"The path {self.text} does not exist{advice}")


_ADVICE: Final = ". Please provide a valid path."


class MemoryFiles:
    """Files of the tool, as records of an agent's folder.

    A folder exists as long as it has a file.

    Args:
        agent_id: Name of the agent whose folder has the files.
        root: Folder of all agents; that of the command line when omitted.
        refuse_secrets: True to raise `ToolError` for a secret instead of replacing it by a marker.
    """

    def __init__(self, agent_id: str, root: str | Path | None, *, refuse_secrets: bool) -> None:
        self._storage = VerbatimStorage(agent_id, _ADAPTER, root, refuse_secrets=refuse_secrets)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return the lines of a file or the list of a folder."""
        path = FilePath.parse(command.path)
        if path.names and (record := await self._find(path)) is not None:
            return _number_file(path, record.content, command.view_range)
        records = await self._storage.list_in(path.names)
        if path.names and not records:
            raise path.get_missing_error(_ADVICE)
        return _list_folder(path, records)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file.

        Raises:
            ToolError: It exists.
        """
        path = FilePath.parse(command.path)
        if not path.names or await self._storage.list_in(path.names, 1):
            raise ToolError(f"File {path.text} already exists")
        draft = self._draft(path.names, command.file_text)
        await self._storage.put([draft], check=self._make_free_check(path, f"File {path.text} already exists"))
        return f"File created successfully at: {path.text}"

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once in a file."""

        def change(text: str) -> tuple[str, int]:
            count = text.count(command.old_str)
            if count == 0:
                raise ToolError(
                    f"No replacement was performed, old_str `{command.old_str}` did not appear verbatim in "
                    f"{command.path}."
                )
            if count > 1:
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{command.old_str}` in lines: "
                    f"{', '.join(map(str, _find_lines(text, command.old_str)))}. Please ensure it is unique"
                )
            return text.replace(command.old_str, command.new_str), text[: text.find(command.old_str)].count("\n")

        text, line = await self._edit(command.path, change)
        lines = text.split("\n")
        start = max(0, line - _SNIPPET_LINES)
        snippet = _number_lines(lines[start : line + _SNIPPET_LINES + 1], start)
        return (
            f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"
        )

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines after a line of a file."""

        def change(text: str) -> tuple[str, int]:
            lines = text.removesuffix("\n").split("\n") if text else []
            if not 0 <= command.insert_line <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {command.insert_line}. "
                    f"It should be within the range [0, {len(lines)}]."
                )
            lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
            text = "\n".join(lines)
            return text if text.endswith("\n") else f"{text}\n", command.insert_line

        await self._edit(command.path, change)
        return f"The file {command.path} has been edited."

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a folder with all its files."""
        path = FilePath.parse(command.path)
        if not path.names:
            raise ToolError(f"Cannot delete the {_ROOT} directory itself")
        record = await self._find(path)
        if record is not None:
            await self._storage.put([], [record.id])
        elif not await self._storage.clear(path.names):
            raise path.get_missing_error()
        return f"Successfully deleted {path.text}"

    async def change_path(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Rename or move a file or folder."""
        old, new = FilePath.parse(command.old_path), FilePath.parse(command.new_path)
        if not old.names:
            raise ToolError(f"Cannot rename the {_ROOT} directory itself")
        taken = f"The destination {new.text} already exists"
        if not new.names or await self._find(new) is not None or await self._storage.list_in(new.names, 1):
            raise ToolError(taken)
        if new.names[: len(old.names)] == old.names:
            raise ToolError(f"Cannot move {old.text} into itself")
        record = await self._find(old)
        records = [record] if record is not None else await self._storage.list_in(old.names)
        if not records:
            raise old.get_missing_error()
        drafts = [
            self._draft((*new.names, *_get_names(record)[len(old.names) :]), record.content) for record in records
        ]
        check_free = self._make_free_check(new, taken)

        def check(current: Mapping[str, VerbatimRecord]) -> None:
            check_free(current)
            _check_unchanged(current, records)

        await self._storage.put(drafts, [record.id for record in records], check=check)
        return f"Successfully renamed {old.text} to {new.text}"

    async def clear(self) -> str:
        """Delete all files."""
        await self._storage.clear(())
        return "All memory cleared"

    async def close(self) -> None:
        """Close the files of the storage."""
        await self._storage.close()

    async def _find(self, path: FilePath) -> VerbatimRecord | None:
        return await self._storage.find(path.names[:-1], path.names[-1])

    def _draft(self, names: Names, text: str) -> VerbatimDraft:
        return self._storage.draft(names[:-1], text, key=names[-1])

    async def _edit(self, place: str, change: Callable[[str], tuple[str, int]]) -> tuple[str, int]:
        """Change a file; return the stored text and the changed line.

        If another process changes the file at the same time, its text is read again.
        """
        path = FilePath.parse(place)
        while True:
            record = await self._find(path) if path.names else None
            if record is None:
                is_folder = not path.names or await self._storage.list_in(path.names, 1)
                raise ToolError(f"The path {place} is not a file.") if is_folder else path.get_missing_error(_ADVICE)
            text, line = change(record.content)
            draft = self._draft(path.names, text)
            try:
                await self._storage.put([draft], check=partial(_check_unchanged, records=[record]))
            except ConflictError:
                continue
            return draft.value.content, line

    def _make_free_check(self, path: FilePath, message: str) -> Callable[[Mapping[str, VerbatimRecord]], None]:
        """Return a check that a path can be created."""
        ids = [self._storage.get_id(path.names[:end], path.names[end]) for end in range(len(path.names))]

        def check(records: Mapping[str, VerbatimRecord]) -> None:
            if ids[-1] in records:
                raise ToolError(message)
            if any(folder in records for folder in ids[:-1]):
                raise ToolError(f"A folder of {path.text} is a file")

        return check


class MemoryFileTool(Generic[AnswerT]):
    """Commands of the memory tool, for both of its base classes.

    Args:
        agent_id: Name of the agent whose folder has the files.
        root: Folder of all agents; that of the command line when omitted.
        refuse_secrets: True to raise `ToolError` for a secret instead of replacing it by a marker.
        options: Options of the base class, such as `cache_control`.
    """

    def __init__(
        self, agent_id: str = "me", *, root: str | Path | None = None, refuse_secrets: bool = False, **options: Any
    ) -> None:
        super().__init__(**options)
        self._files, self._loop = MemoryFiles(agent_id, root, refuse_secrets=refuse_secrets), LoopThread()

    def _run(self, work: Coroutine[Any, Any, str]) -> AnswerT:
        """Return the answer, or an awaitable of it."""
        raise NotImplementedError

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> AnswerT:
        """Return the lines of a file or the list of a folder."""
        return self._run(self._files.view(command))

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> AnswerT:
        """Create a file."""
        return self._run(self._files.create(command))

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> AnswerT:
        """Replace a text that occurs once in a file."""
        return self._run(self._files.str_replace(command))

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> AnswerT:
        """Insert lines after a line of a file."""
        return self._run(self._files.insert(command))

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> AnswerT:
        """Delete a file, or a folder with all its files."""
        return self._run(self._files.delete(command))

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> AnswerT:
        """Rename or move a file or folder."""
        return self._run(self._files.change_path(command))

    def clear_all_memory(self) -> AnswerT:
        """Delete all files."""
        return self._run(self._files.clear())


class AgentMemoryTool(MemoryFileTool[str], BetaAbstractMemoryTool):
    """Anthropic's memory tool on the memory folder of an agent."""

    def _run(self, work: Coroutine[Any, Any, str]) -> str:
        return self._loop.wait_for(_translate(work))

    def close(self) -> None:
        """Close the files of the storage. Can be called more than once."""
        self._loop.wait_for(self._files.close())
        self._loop.stop()


class AsyncAgentMemoryTool(MemoryFileTool["Coroutine[Any, Any, str]"], BetaAsyncAbstractMemoryTool):
    """`AgentMemoryTool` for asyncio."""

    def _run(self, work: Coroutine[Any, Any, str]) -> Coroutine[Any, Any, str]:
        return _translate(work)

    async def close(self) -> None:
        """Close the files of the storage. Can be called more than once."""
        await self._files.close()


async def _translate(work: Coroutine[Any, Any, str]) -> str:
    """Return an answer, with our errors as errors for the model."""
    try:
        return await work
    except AgentMemoryError as error:
        raise ToolError(error.message) from error


def _get_names(record: VerbatimRecord) -> Names:
    return (*record.namespace, record.key)


def _check_unchanged(current: Mapping[str, VerbatimRecord], records: Sequence[VerbatimRecord]) -> None:
    """Check that no other process changed the records.

    Raises:
        ConflictError: One was changed or deleted.
    """
    if any(current.get(record.id) != record for record in records):
        raise ConflictError("Another process changed the file; nothing was changed. Try again.")


def _find_lines(text: str, part: str) -> Iterator[int]:
    """Yield the line numbers of all places of a part, from 1."""
    place = text.find(part)
    while place >= 0:
        yield text[:place].count("\n") + 1
        place = text.find(part, place + 1)


def _number_lines(lines: Sequence[str], start: int) -> str:
    """Return numbered lines.

    Args:
        lines: Lines to number.
        start: Number of lines before the first.
    """
    return "\n".join(f"{number:>{_NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, start + 1))


def _number_file(path: FilePath, text: str, view_range: Sequence[int] | None) -> str:
    """Return the numbered lines of a file or a range.

    Raises:
        ToolError: It has too many lines.
    """
    lines, start = text.split("\n"), 0
    if len(lines) > _MAX_LINES:
        raise ToolError(f"File {path.text} exceeds maximum line limit of {_MAX_LINES:,} lines.")
    match view_range:
        case [first, last]:
            start = max(1, first) - 1
            lines = lines[start : None if last == -1 else last]
    return f"Here's the content of {path.text} with line numbers:\n{_number_lines(lines, start)}"


def _list_folder(path: FilePath, records: Sequence[VerbatimRecord]) -> str:
    """Return the list of a folder, two levels deep, without hidden names."""
    sizes: dict[Names, int] = {}
    folders: set[Names] = {()}
    for record in records:
        names, size = _get_names(record)[len(path.names) :], len(record.content.encode())
        shown = [names[:level] for level in range(min(len(names), _LEVELS) + 1)]
        for part in shown if not any(name.startswith(".") for name in names[:_LEVELS]) else shown[:1]:
            sizes[part] = sizes.get(part, 0) + size
        folders.update(names[:level] for level in range(len(names)))
    sizes.setdefault((), 0)
    place = path.text.rstrip("/")
    lines = [
        f"{_format_size(sizes[names])}\t{'/'.join((place, *names))}{'/' if names and names in folders else ''}"
        for names in sorted(sizes)
    ]
    head = f"Here're the files and directories up to {_LEVELS} levels deep in {path.text}, excluding hidden items:"
    return "\n".join([head, *lines])


def _format_size(size: int) -> str:
    """Return a size as `ls -h` prints it."""
    power = min((size.bit_length() - 1) // 10, 3) if size else 0
    value = size / 1024**power
    return f"{int(value) if value == int(value) else format(value, '.1f')}{'BKMG'[power]}"
