"""`agent-memory backfill`: import sessions of another program, propose memories."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

import typer

from agent_memory.capture.extractor import CaptureLedger, Extractor
from agent_memory.cli.options import Yes, parse_moment
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.source_import import BackfillScope, ImportChoices, import_source
from agent_memory.errors import ValidationError
from agent_memory.knowledge.sources.source_files import SourceTree, open_path
from agent_memory.memory.drafts import get_observed_fields
from agent_memory.memory.inbox_access import opened_inbox
from agent_memory.models import CANDIDATE, Candidate, Source
from agent_memory.models.identifiers import TextOrigin
from agent_memory.settings import CaptureSettings
from agent_memory.store.record_redaction import redact_record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from datetime import datetime

    from agent_memory.knowledge.bulk_import import ImportedTalk
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Observation

_LIMIT: Final = 10_000


class LogPlaces(NamedTuple):
    """Folder and files of a program's session logs.

    Attributes:
        variable: Environment variable with the program's folder.
        folder: Folder in the user's home without it.
        patterns: Patterns of the logs below the folder.
    """

    variable: str
    folder: str
    patterns: tuple[str, ...]


PROGRAMS: Final[Mapping[str, LogPlaces]] = {
    "claude-code": LogPlaces("CLAUDE_CONFIG_DIR", ".claude", ("projects/*/*.jsonl",)),
    "codex": LogPlaces("CODEX_HOME", ".codex", ("sessions/**/rollout-*.jsonl", "archived_sessions/**/rollout-*.jsonl")),
    "amplifier": LogPlaces(
        "AMPLIFIER_HOME",
        ".amplifier",
        tuple(f"projects/*/sessions/*/{name}.jsonl" for name in ("events", "transcript")),
    ),
}
"""Programs with session logs, by the names of their formats."""


def open_logs(program: str, since: "datetime | None") -> SourceTree:
    """Return the logs of a program that changed since a time.

    Raises:
        ValidationError: The program has none (`no_file`).
    """
    places = PROGRAMS[program]
    home = Path(os.environ.get(places.variable) or Path.home() / places.folder).expanduser().resolve()
    paths = sorted({path for pattern in places.patterns for path in home.glob(pattern) if path.is_file()})
    if not paths:
        raise ValidationError(
            f"No session of {program} is in {home}; nothing was imported.",
            code="no_file",
            recovery=f"Set {places.variable} to the folder of {program}, or run `agent-memory import FILE`.",
        )
    files = [open_path(path, path.relative_to(home).as_posix()) for path in paths]
    recent = [file for file in files if since is None or file.changed_at is None or file.changed_at >= since]
    return SourceTree(program, {file.name: file for file in recent}, home, is_live=True)


class TalkProposals:
    """Proposes memories from what the user typed in imported sessions.

    The rules of capture choose the sentences. All of them wait in the inbox, as one batch of the import.

    Args:
        service: Memories of the agent.
        caller: Session of the import.
    """

    def __init__(self, service: "MemoryService", caller: "Caller") -> None:
        self._service, self._caller = service, caller
        self._settings = CaptureSettings()
        self._extractor = Extractor(self._settings)

    async def propose(self, talk: "ImportedTalk") -> int:
        """Send proposals of new turns to the inbox; count them.

        Raises:
            StorageError: The inbox cannot be written.
        """
        ledger = CaptureLedger(self._settings.max_captures_per_session)
        candidates: list[Candidate] = []
        batches = self._extract(talk)
        while (observations := await asyncio.to_thread(next, batches, None)) is not None:
            drafts = [await self._draft(observation, talk) for observation in ledger.admit(observations)[0]]
            candidates += [candidate for candidate in drafts if candidate is not None]
        if not candidates:
            return 0
        async with opened_inbox(self._service) as inbox:
            return await inbox.take_in(candidates)

    def _extract(self, talk: "ImportedTalk") -> "Iterator[list[Observation]]":
        """Yield the observations in each new message of the user."""
        for order, turn in enumerate(talk.part.turns):
            if order >= talk.stored_count and turn.role == "user" and not turn.speaker and turn.trust == "high":
                yield self._extractor.examine(turn.text, "user", now=turn.said_at).observations

    async def _draft(self, observation: "Observation", talk: "ImportedTalk") -> Candidate | None:
        fields = get_observed_fields(observation) | {
            "source": Source(kind="import", detail=talk.file.base_name[-200:]),
            "origin": str(TextOrigin("import", talk.form)),
            "project": str(talk.part.metadata.get("project", "")),
            "trust": "low",
        }
        drafted = await self._service.writer.draft_capture(fields, self._caller)
        if isinstance(drafted, str):
            return None
        values = {"via": "import", "batch": self._caller.session_id, "rule": observation.rule[:100], "is_note": True}
        return redact_record(CANDIDATE, Candidate.of(drafted.value, **values)).value


@command(may_be_new=True)
async def backfill(
    run: AgentContext,
    program: Annotated[
        Literal["claude-code", "codex", "amplifier"],
        typer.Argument(metavar="PROGRAM", help="claude-code, codex or amplifier."),
    ],
    *,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="DATE", help="Only sessions that went on after DATE, e.g. 2026-01-30 or 30d."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="Begin no session after N new messages.")
    ] = _LIMIT,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the sessions; store nothing.")] = False,
    yes: Yes = False,
) -> None:
    """Import the past sessions of a program; propose memories.

    The newest sessions come first. Proposals wait in the inbox. The same command again imports what is left.
    """

    def build_proposals() -> "Callable[[ImportedTalk], Awaitable[int]]":
        return TalkProposals(run.service, run.caller).propose

    scope = BackfillScope(parse_moment(since, "--since", end=False), limit, build_proposals)
    tree = await asyncio.to_thread(open_logs, program, scope.since)
    choices = ImportChoices(f"backfill {program}".encode(), program, dry_run=dry_run, yes=yes, scope=scope)
    await import_source(run, tree, choices)
