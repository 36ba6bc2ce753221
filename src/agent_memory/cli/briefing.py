"""The command that shows what a session begins with."""

from typing import Annotated

import typer

from agent_memory.cli.runtime import AgentContext, command
from agent_memory.files.wording import counted
from agent_memory.memory.briefing import TOKENS, SessionBriefing
from agent_memory.models import visible


@command(may_be_none=True)
async def briefing(
    run: AgentContext,
    *,
    asked: Annotated[
        str, typer.Option("--for", metavar="TEXT", help="First question of the session; without it, the constant part.")
    ] = "",
    tokens: Annotated[
        int, typer.Option("--tokens", min=100, max=10_000, metavar="N", help="Maximum tokens of the context.")
    ] = TOKENS,
) -> None:
    """Show the context that a session gets before its first answer."""
    briefings = SessionBriefing(run.service, tokens)
    try:
        made = await briefings.make(asked, run.caller)
    finally:
        await briefings.close()
    sources = [memory.id for memory in (*made.memories, *made.turns)]
    run.screen.document(
        {"agent_id": run.service.agent_id, "text": made.text, "tokens": made.tokens, "sources": sources}
    )
    if not made.text:
        about = " bears on that" if asked.strip() else " is pinned, preferred, noted as a task or lately decided"
        run.screen.note(f"Nothing{about}: the session begins with the scratchpad alone.")
        return
    run.screen.show(visible(made.text))
    shown = [counted(len(made.memories), "memory", "memories")] if made.memories else []
    shown += [counted(len(made.turns), "turn")] if made.turns else []
    what = " and ".join(shown) or "no memory"
    run.screen.note(f"About {made.tokens:,} tokens of {tokens:,}, from {what}.", style="dim")
