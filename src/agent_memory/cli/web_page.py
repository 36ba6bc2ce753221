"""`agent-memory page`: see, decide and undo in a browser on this machine."""

from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer

from agent_memory.cli.options import AgentOption, choose_served_agent
from agent_memory.cli.runtime import CommandContext, command
from agent_memory.registry import load_handler
from agent_memory.settings import PERSON_SECONDS, ServiceSettings, build_settings
from agent_memory.settings.installation import check_installed

_NEEDED: Final = ("starlette", "jinja2", "uvicorn")
_SERVE: Final = "agent_memory.web.page_server:serve_page"
_SESSION: Final = "agent_memory.web.page_view:PageSession"
_DEMO: Final = "agent_memory.web.demo_year:build_demo"
_DEMO_AGENT: Final = "demo"


@command(AgentOption)
async def page(
    run: CommandContext,
    *,
    read_only: Annotated[bool, typer.Option("--read-only", help="Change nothing.")] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Show an invented year.")] = False,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, metavar="N", help="Port of 127.0.0.1; 0: a free one.")
    ] = 0,
    embedder: Annotated[
        str, typer.Option("--embedder", metavar="NAME", help="Embedder; none needs less memory.")
    ] = "local",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
) -> None:
    """Open a page in the browser to see, edit, decide and undo."""
    check_installed("The page needs packages that are not installed.", "web", *_NEEDED)
    with TemporaryDirectory(prefix="agent-memory-page-") as folder:
        root = folder if demo else str(run.root)
        values = {"storage_root": root, "embedder": embedder, "lock_timeout": PERSON_SECONDS}
        settings = build_settings("page", ServiceSettings, values)
        if demo:
            await load_handler(_DEMO)(_DEMO_AGENT, settings)
        agent = _DEMO_AGENT if demo else choose_served_agent(run.get_options(AgentOption).agent, run.root)
        session = load_handler(_SESSION)(agent, settings, is_read_only=read_only, is_demo=demo)
        await load_handler(_SERVE)(
            session, port, lambda address: _announce(run, agent, address), opens_browser=not no_browser
        )


def _announce(run: CommandContext, agent: str, address: str) -> None:
    run.screen.show(address)
    run.screen.hint(f"Memory of {agent}. The address is valid once, in one browser. Ctrl-C ends the page.")
