"""`agent-memory knowledge rebuild`."""

import typer

from agent_memory.cli.exit_codes import FAILED
from agent_memory.cli.knowledge import open_knowledge
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.files.wording import counted
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.pipeline.background_work import rebuild as read_again
from agent_memory.knowledge.pipeline.background_work import runner_of


@command()
async def rebuild(run: AgentContext) -> None:
    """Process stored documents and conversations again with this version's rules.

    Nothing is deleted, and what you edited, pinned or forgot stays so.

    An interrupted command continues where it stopped.
    """
    run.screen.last_words = lambda: "Stopped. The same command continues from here."

    with run.screen.show_steps("Reading again") as report:
        async with open_knowledge(run) as knowledge:
            runner = runner_of(knowledge, run.service, run.caller, at_once=True)
            result = await read_again(knowledge, run.service, runner, report)
            topics = await Pages(knowledge, run.service).list_shown()
    pages = sum(topic.consolidated_at is not None for topic in topics)
    counts = {"records": result.records, "new": result.new, "pages": pages}
    run.screen.document({"agent_id": run.service.agent_id, **counts, "failed": result.failed, "busy": result.is_busy})
    if result.is_busy:
        run.screen.note("Another process is doing this. Run the command again to see the result.")
        raise typer.Exit(FAILED)
    failed = f"; {counted(result.failed, 'record')} failed, `agent-memory status` says why" if result.failed else ""
    run.screen.show(
        f"{counted(result.records, 'document or turn', 'documents and turns')} read again: "
        f"{counted(result.new, 'new item')}, {counted(pages, 'page')}{failed}."
    )
