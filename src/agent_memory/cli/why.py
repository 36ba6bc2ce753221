"""`agent-memory why`: source, chain and trust of a record."""

import re
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated, Final

import typer

from agent_memory.care.provenance import (
    MOST_LINKS,
    Provenance,
    ProvenanceChange,
    ProvenanceStep,
    SourceLookup,
    explain_trust,
    get_words,
    view_provenance,
)
from agent_memory.cli.inbox import find_candidate, show_candidate, view_candidate
from agent_memory.cli.knowledge import open_knowledge
from agent_memory.cli.options import build_ambiguous, resolve_ids
from agent_memory.cli.render import row
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.text import minute
from agent_memory.errors import UnknownIdError
from agent_memory.memory.inbox_access import opened_inbox
from agent_memory.models import CANDIDATE, Episode
from agent_memory.models.clock import FILE_TIME
from agent_memory.models.record import describe_origin
from agent_memory.models.text import brief
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from agent_memory.knowledge.records import Knowledge

_ID: Final = re.compile(r"[a-z]{3}-[0-9a-f]{12}")
_SHOWN: Final = 10
_NOT_HERE: Final = frozenset({"replaced", "expired", "archived", "forgotten", "gone"})


@command()
async def why(
    run: AgentContext,
    record_id: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="ID of any record (memory, item, document, turn, topic, summary, entity, relation, proposal) "
            "or its beginning, or a topic.",
            show_default=False,
        ),
    ],
) -> None:
    """Show who wrote something, its sources, its trust and why."""
    if record_id.startswith(CANDIDATE.prefix):
        await _show_waiting(run, record_id)
        return
    async with AsyncExitStack() as stack:
        has_more = run.service.settings.backend != "server"  # a server keeps memories alone
        knowledge = await stack.enter_async_context(open_knowledge(run)) if has_more else None
        sources = SourceLookup(run.service, knowledge)
        provenance = await sources.of(await _resolve_id(run, sources, knowledge, record_id))
    run.screen.document(view_provenance(provenance))
    _show(run, provenance)


async def _show_waiting(run: AgentContext, word: str) -> None:
    """Show a proposal or waiting note and the reason of its trust.

    Raises:
        UnknownIdError: It does not wait.
    """
    async with opened_inbox(run.service) as inbox:
        try:
            candidate = find_candidate([*await inbox.waiting(), *await inbox.archived()], word)
        except UnknownIdError:
            raise UnknownIdError(
                f"{quoted(word)} does not wait for a decision.",
                recovery="Run `agent-memory review` to see what waits, or `agent-memory undo` for what was accepted.",
            ) from None
        run.screen.document({**view_candidate(inbox, candidate), "why": explain_trust(candidate)})
    show_candidate(run, candidate)
    row(run.screen, "trust", f"{candidate.trust}: {explain_trust(candidate)}")
    if origin := describe_origin(candidate):
        row(run.screen, "origin", origin)
    if candidate.created_by_session:
        row(run.screen, "session", candidate.created_by_session)
    run.screen.hint(f"Run `agent-memory accept {candidate.id}` or `agent-memory inbox --reject {candidate.id}`.")


async def _resolve_id(run: AgentContext, sources: SourceLookup, knowledge: "Knowledge | None", word: str) -> str:
    """Return the id that a word means.

    Raises:
        UnknownIdError: No such record.
        ValidationError: Several begin with it.
    """
    if _ID.fullmatch(word):
        return word
    if "-" in word and not word.startswith("mem-"):
        matches = await sources.meant(word)
        if len(matches) > 1:
            raise build_ambiguous(word, len(matches), f" {', '.join(matches)}.")
        if matches:
            return matches[0]
    for topic in await knowledge.topics.valid() if knowledge is not None else ():
        if topic.name == word:
            return topic.id
    try:
        return (await resolve_ids(run.service, [word], forgotten=True, read_only=True))[0]
    except UnknownIdError:
        raise UnknownIdError(
            f"Nothing is known about {quoted(word)}.",
            recovery="Run `agent-memory list`, or `agent-memory knowledge` with resources, topics, entities, "
            "episodes or summaries: they show IDs.",
        ) from None


def _show(run: AgentContext, provenance: Provenance) -> None:
    record, screen = provenance.record, run.screen
    state = "" if provenance.state == "here" else f" · {provenance.state}"
    screen.show(f"{record.id} · {provenance.kind}{state}", style="bold")
    row(screen, "says", brief(get_words(record)))
    row(screen, "trust", f"{record.trust}: {provenance.why}", style="red" if record.trust == "low" else "")
    detail = f" ({record.source.detail})" if record.source.detail else ""
    session = f", session {record.created_by_session}" if record.created_by_session else ""
    row(screen, "written", f"{minute(record.timestamp)}, by {record.source.kind}{detail}{session}")
    if origin := describe_origin(record):
        row(screen, "origin", origin)
    if record.observed_at is not None:
        row(screen, "file of" if FILE_TIME in record.metadata else "said", minute(record.observed_at))
    speaker = (record.speaker or record.role) if isinstance(record, Episode) else record.metadata.get("speaker")
    if isinstance(speaker, str):
        row(screen, "speaker", speaker)
    if record.belongs_to:
        row(screen, "group", record.belongs_to)
    for changed in provenance.changes[1:]:
        row(screen, changed.what, _change(changed))
    _steps(run, "rests on", provenance.rests_on)
    _steps(run, "replaces", provenance.replaces)
    if provenance.replaced_by is not None:
        row(screen, "replaced by", provenance.replaced_by)
    _steps(run, "used by", provenance.used_by)


def _steps(run: AgentContext, label: str, steps: tuple[ProvenanceStep, ...]) -> None:
    for position, step in enumerate(steps[:_SHOWN]):
        row(run.screen, "" if position else label, _step(step))
    if len(steps) > _SHOWN:
        more = "or more " if len(steps) >= MOST_LINKS else ""
        row(run.screen, "", f"… and {len(steps) - _SHOWN} {more}others; --json has them")


def _step(step: ProvenanceStep) -> str:
    """Return a record of a chain on one line, indented by distance."""
    where = step.detail if step.kind == "resource" and step.detail != step.text else ""
    details = ", ".join(filter(None, (step.trust, step.origin, where, step.state if step.state in _NOT_HERE else "")))
    away = "\N{BOX DRAWINGS LIGHT UP AND RIGHT} " * (step.depth > 1)
    text = f": {brief(step.text)}" if step.text else ""
    return f"{away}{step.rel.replace('_', ' ')} {step.id} ({details}){text}"


def _change(changed: ProvenanceChange) -> str:
    fields = f": {', '.join(changed.fields)}" if changed.fields else ""
    session = f", session {changed.session}" if changed.session else ""
    trust = f", {changed.trust} trust since" if changed.trust is not None and "trust" in changed.fields else ""
    return f"{minute(changed.at)}{session}{fields}{trust}"
