"""`agent-memory status`: counts, health and background work."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import typer

from agent_memory.care.checks.health_report import list_backlog
from agent_memory.care.consent_files import read_consent, view_consent
from agent_memory.cli.archive import count_archived
from agent_memory.cli.consent_limits import show_consent
from agent_memory.cli.exit_codes import FAILED
from agent_memory.cli.render import row, show_status
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.text import minute
from agent_memory.earlier_name_tables import get_earlier_keys
from agent_memory.errors import StorageError
from agent_memory.files.layout import folder_of
from agent_memory.files.wording import counted, describe_waiting
from agent_memory.knowledge.digest.model_digest import ModelEstimate, estimate_use
from agent_memory.knowledge.digest.passage_digest import DIGESTED_AT, list_passages
from agent_memory.knowledge.llm.language_model import ModelUse, get_model_proposal
from agent_memory.memory.inbox_access import count_waiting
from agent_memory.models import to_text, utc_now
from agent_memory.models.text import one_line
from agent_memory.registry import load_handler

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.knowledge.pipeline.stages import Backlog, QuarantinedRecord

_TURN_FILES: Final = "agent_memory.integrations.mcp.turn_files:TurnFiles"


@command(may_be_none=True)
async def status(run: AgentContext) -> None:
    """Show how many memories there are, and problems."""
    state = await run.service.status()
    folder = folder_of(state.agent_id, run.root)
    background, trouble = await _background(run)
    background_fields: dict[str, Any] = {"background": [_backlog_fields(stage) for stage in background]}
    background_fields |= {"background_error": trouble} if trouble else {}
    archived = await count_archived(run)
    put_away: dict[str, Any] = {"archived": archived} if archived else {}
    if waiting := await count_waiting(run.service):
        put_away["inbox"] = waiting
    use, (passages, estimate) = ModelUse.read(folder.path, utc_now()), await _count_passages(run)
    if passages:
        tokens = estimate.prompt_tokens + estimate.answer_tokens
        due = {"passages": estimate.passages, "tokens": tokens, "proposal": get_model_proposal(state.agent_id)}
        put_away |= {"passages": passages, "model": {**use.get_counts(), "due": due}}
    held = read_consent(run.root, state.agent_id)
    consent = {"consent": view_consent(held)}
    put_away |= _list_hooks(folder.path)
    run.screen.document({**asdict(state), **put_away, **background_fields, **consent, "folder": str(folder.path)})
    show_status(run.screen, state, folder.path)
    show_consent(run.screen, held)
    if archived:
        hint = run.screen.complete("`agent-memory archive` looks into it")
        row(run.screen, "archive", f"{counted(archived, 'memory', 'memories')}; {hint}")
    if waiting:
        hint = run.screen.complete("`agent-memory review` shows them")
        row(run.screen, "inbox", f"{describe_waiting(waiting)} for your decision; {hint}")
    for host, hooks in put_away.get("hooks", {}).items():
        row(run.screen, "hooks", _describe_hooks(run, host, hooks))
    if passages:
        row(run.screen, "passages", f"{counted(passages['total'], 'passage')}, {passages['digested']:,} digested")
        row(run.screen, "model", _describe_use(use))
        row(run.screen, "", run.screen.complete(_describe_yes(use, estimate, state.agent_id)))
    _show_background(run, background)
    if trouble:
        row(run.screen, "background", trouble)
    if state.health.get("status") == "unreadable":
        raise typer.Exit(FAILED)


def _show_background(run: AgentContext, background: "list[Backlog]") -> None:
    for stage in background:
        row(run.screen, "background", _sentence(stage))
        for record in stage.quarantined:
            hint = run.screen.complete(f"`agent-memory ingest --retry {record.id}` tries again")
            row(run.screen, "quarantined", f"{_describe(record)} {hint}")


async def _background(run: AgentContext) -> "tuple[list[Backlog], str]":
    """Return counts of waiting and failed background work."""
    try:
        return await list_backlog(run.service), ""
    except StorageError as error:
        return [], error.message


async def _count_passages(run: AgentContext) -> tuple[dict[str, int], ModelEstimate]:
    """Return counts of passages and the estimate of those due.

    Nothing is counted if they cannot be read.
    """
    try:
        passages = await list_passages(run.service, run.caller)
    except StorageError:  # the health in the status says what is wrong
        passages = []
    due = [passage for passage in passages if DIGESTED_AT not in passage.metadata]
    counts = {"total": len(passages), "digested": len(passages) - len(due)} if passages else {}
    return counts, estimate_use(due)


def _list_hooks(folder: "Path") -> dict[str, Any]:
    hosts = load_handler(_TURN_FILES)(folder).list_hosts()
    return {"hooks": hosts} if hosts else {}


def _describe_hooks(run: AgentContext, host: str, state: str) -> str:
    """Describe whether a host's hooks report what its user types."""
    name = "a client without a name" if host == "unknown" else host
    if state != "missing":
        return f"{name}: {state}"
    return f"{name}: missing, so nothing counts as typed there; " + run.screen.complete("install plugins/agent-memory")


def _backlog_fields(backlog: "Backlog") -> dict[str, Any]:
    quarantined = [{**asdict(record), "since": to_text(record.since)} for record in backlog.quarantined]
    oldest = None if backlog.oldest is None else to_text(backlog.oldest)
    return {**asdict(backlog), "oldest": oldest, "quarantined": quarantined, **get_earlier_keys("status")}


def _describe_use(use: ModelUse) -> str:
    """Return a sentence about the background model."""
    if not use.asked and not use.paused:
        return "off: a shell has no model that could read the passages"
    verbatim = f" ({use.verbatim:,} in the document's words)" if use.verbatim else ""
    counts = f"{counted(use.asked, 'passage')} asked, {counted(use.added, 'statement')} added{verbatim}"
    counts += f", {use.refused:,} refused"
    paused = f"; paused because {use.paused}" if use.paused else ""
    return f"{counts}, {counted(use.tokens, 'token')} today{paused}"


def _describe_yes(use: ModelUse, estimate: ModelEstimate, agent_id: str) -> str:
    """Describe the estimate of a model, and the permission."""
    proposal = get_model_proposal(agent_id)
    if use.is_agreed:
        return f"allowed by you; `agent-memory accept {proposal} --undo` ends that"
    tokens = estimate.prompt_tokens + estimate.answer_tokens
    due = f"{counted(estimate.passages, 'passage')}, about {counted(tokens, 'token')}"
    setting = "`model: session` of hooks-memory-ingestion"
    return f"`agent-memory accept {proposal}` lets sessions with {setting} use theirs: {due}"


def _describe(record: "QuarantinedRecord") -> str:
    since = f"since {minute(record.since)}: {record.reason}"
    return f"{record.id} {one_line(record.title)}, {since}; stored, and nothing is derived from it."


def _sentence(backlog: "Backlog") -> str:
    since = f", the first since {minute(backlog.oldest)}" if backlog.oldest is not None else ""
    why = f"; {backlog.failed:,} failed ({', '.join(backlog.codes)})" if backlog.failed else ""
    ended = f"; {backlog.given_up:,} of them are not tried again" if backlog.given_up else ""
    verb = "waits" if backlog.due == 1 else "wait"
    return f"{backlog.stage} of {backlog.source}s: {backlog.due:,} {verb}{since}{why}{ended}"
