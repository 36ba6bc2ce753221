"""`agent-memory mcp`: serve hosts by the Model Context Protocol."""

from pathlib import Path
from typing import Annotated, Final

import typer

from agent_memory.cli.options import AgentOption, choose_served_agent
from agent_memory.cli.runtime import CommandContext, command
from agent_memory.registry import load_handler
from agent_memory.settings import ServiceSettings, build_settings
from agent_memory.settings.installation import check_installed

_STDIO: Final = "agent_memory.integrations.mcp.server:serve_stdio"
_SESSION: Final = "agent_memory.integrations.mcp.server_session:ServerSession"
_HTTP: Final = "agent_memory.integrations.mcp.http_server:serve_http"


@command(AgentOption)
async def mcp(
    run: CommandContext,
    *,
    http: Annotated[bool, typer.Option("--http", help="Serve on 127.0.0.1 instead, for a token in a file.")] = False,
    embedder: Annotated[
        str, typer.Option("--embedder", metavar="NAME", help="Embedder; none searches by words alone, in less memory.")
    ] = "local",
    project_only: Annotated[
        bool, typer.Option("--project-only", help="Serve only the memories of the project in this folder.")
    ] = False,
    port: Annotated[int, typer.Option("--port", min=1, max=65_535, metavar="N", help="Port of --http.")] = 8_765,
) -> None:
    """Serve an MCP host on stdin and stdout, until it closes them."""
    check_installed("The MCP server needs the package mcp, which is not installed.", "mcp", "mcp")
    agent = choose_served_agent(run.get_options(AgentOption).agent, run.root)
    settings = build_settings("mcp", ServiceSettings, {"storage_root": str(run.root), "embedder": embedder})
    session = load_handler(_SESSION)(agent, settings, Path.cwd(), is_project_only=project_only)
    if http:
        await load_handler(_HTTP)(session, run.root, port, lambda address, path: _announce(run, agent, address, path))
    else:
        await load_handler(_STDIO)(session)


def _announce(run: CommandContext, agent: str, address: str, path: Path) -> None:
    run.screen.hint(f"Memory of {agent} at {address}. Bearer token: {path}. Ctrl-C ends it.")
