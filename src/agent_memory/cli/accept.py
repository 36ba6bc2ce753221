"""The command `accept`: yes to the proposal of a session."""

import asyncio
from typing import Annotated

import typer

from agent_memory.cli.inbox import describe_accepted, find_candidate
from agent_memory.cli.knowledge import open_knowledge, process_due_texts
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.files.layout import folder_of
from agent_memory.files.wording import counted
from agent_memory.knowledge.intake.withdrawal import list_acceptable, list_session
from agent_memory.knowledge.llm.language_model import ModelUse, get_model_proposal
from agent_memory.models import RESOURCE, utc_now
from agent_memory.models.identifiers import IMPORT_PREFIX
from agent_memory.redaction import quoted


async def _accept_waiting(run: AgentContext, proposal: str) -> None:
    """Accept what waits in the inbox.

    Raises:
        UnknownIdError: Nothing waits with this ID.
    """
    from agent_memory.memory.inbox_access import opened_inbox

    async with opened_inbox(run.service) as inbox:
        try:
            candidate = find_candidate(await inbox.waiting(), proposal)
        except UnknownIdError:
            raise UnknownIdError(
                f"{quoted(proposal)} is not a proposal for agent {run.service.agent_id}; nothing was changed.",
                recovery="Run `agent-memory review` to see what waits, or `agent-memory status` for a model's.",
            ) from None
        stored = await inbox.accept(candidate.id, run.caller)
    run.screen.document({"agent_id": run.service.agent_id, "id": candidate.id, "memory_id": stored.memory.id})
    run.screen.show(describe_accepted(candidate, stored))
    run.hint_undo(stored.memory.id)


async def _accept_import(run: AgentContext, import_id: str) -> None:
    """Raise the user's part of an import to medium trust.

    Raises:
        UnknownIdError: The import stored nothing.
    """
    changes = await run.service.history.list_session(import_id)
    ids = [part.record_id for change in changes for part in change.parts]
    raised, resources = list[str](), list[str]()
    memories = (await run.service.storage.valid_among(ids)).values()
    if (folder_of(run.service.agent_id, run.root).path / RESOURCE.journal).exists():
        async with open_knowledge(run) as knowledge:
            resources, _ = await list_session(knowledge, import_id)
            await process_due_texts(run, knowledge, is_shown=False)
            raised = await list_acceptable(knowledge, run.service, resources)
    if not memories and not resources:
        raise UnknownIdError(
            f"Nothing is stored of {quoted(import_id)}; nothing was changed.",
            recovery=f"Run `agent-memory inbox --accept {import_id}` for what waits.",
        )
    raised += [memory.id for memory in memories if memory.trust == "low" and not memory.is_item]
    if raised:
        run.begin_import()
    for memory_id in raised:
        await run.service.update(memory_id, {"trust": "medium"}, run.caller)
    run.screen.document({"agent_id": run.service.agent_id, "id": import_id, "memories": raised})
    if not raised:
        run.screen.show("They are accepted already.")
        return
    run.screen.show(f"{counted(len(raised), 'memory has', 'memories have')} medium trust now.")
    run.hint_undo(f"--import {run.caller.session_id}")


@command()
async def accept(
    run: AgentContext,
    proposal: Annotated[
        str, typer.Argument(metavar="ID", help="ID of a proposal, as a session or status shows it, or of an import.")
    ],
    *,
    undo: Annotated[bool, typer.Option("--undo", help="Withdraw the permission.")] = False,
) -> None:
    """Say yes to a session's proposal, a waiting note or an import.

    A proposal is what a session may not do without a yes; `review` lists them. A background model's
    proposal allows it to digest passages of this agent. `model_budget` limits its tokens a day.
    """
    if proposal.startswith(IMPORT_PREFIX) and not undo:
        await _accept_import(run, proposal)
        return
    if proposal.strip().lower() != get_model_proposal(run.service.agent_id):
        if undo:
            raise ValidationError(
                f"--undo withdraws only a background model's permission, not {quoted(proposal)}; nothing was changed.",
                code="usage",
                recovery="Run `agent-memory inbox --reject ID` to reject what waits.",
            )
        await _accept_waiting(run, proposal)
        return
    folder, now = folder_of(run.service.agent_id, run.root).path, utc_now()
    use = await asyncio.to_thread(ModelUse.read, folder, now)
    use.is_agreed, use.paused = not undo, ""
    await asyncio.to_thread(use.write, folder)
    run.screen.document({"agent_id": run.service.agent_id, "is_agreed": use.is_agreed})
    outcome = "No background model may" if undo else "A background model may"
    run.screen.show(f"{outcome} digest passages of {run.service.agent_id}.")
    if not undo:
        run.screen.hint("A session with `model: session` of hooks-memory-ingestion starts it.")
        run.screen.hint(f"Undo: `agent-memory accept {proposal.strip()} --undo`")
