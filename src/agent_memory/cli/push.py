"""Commands between this machine and a team's server: push, pull."""

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from agent_memory.cli.report import Report
from agent_memory.cli.running import Run, command
from agent_memory.errors import ConfigurationError
from agent_memory.files.layout import folder_of
from agent_memory.models import Memory
from agent_memory.settings import ServiceSettings, build_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent_memory.memories import QdrantServerStorage
    from agent_memory.storage import MemoryStorage

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        envvar="QDRANT_URL",
        help="The server, such as https://host:6333; its key is read from QDRANT_API_KEY and nowhere else.",
    ),
]
Collection = Annotated[str, typer.Option("--collection", metavar="NAME", help="Collection on the server.")]
Embedder = Annotated[
    str, typer.Option("--embedder", metavar="KIND", help="What the server's vectors are of: local, openai or none.")
]


async def push(
    run: Run, url: Url = None, collection: Collection = "agent_memory", embedder: Embedder = "local"
) -> None:
    """Bring what is missing there to the server; nothing there is changed. May be broken off and repeated."""
    async with _server(run, url, collection, embedder) as server:
        report = await _transfer(run, "Push", await run.service.admin.everything(), server)
        await server.prepare()
    report.end()


@command(may_be_new=True)
async def pull(run: Run, url: Url = None, collection: Collection = "agent_memory", embedder: Embedder = "none") -> None:
    """Bring what is missing here from the server; nothing here is changed. May be broken off and repeated."""
    async with _server(run, url, collection, embedder) as server:
        report = await _transfer(run, "Pull", [memory async for memory in server.iter_all()], None)
    report.end()


async def _transfer(run: Run, doing: str, memories: list[Memory], target: "MemoryStorage | None") -> Report:
    """Bring what is missing to another storage, None for this agent's own, and tell what became of each."""
    report = Report(run.screen, f"{doing}ed", [memory.id for memory in memories], there="there", more={"forgotten": 0})
    with report.counting(f"{doing}ing") as each:
        await run.service.admin.transfer(memories, each, run.caller, to=target)
    return report


@asynccontextmanager
async def _server(run: Run, url: str | None, collection: str, embedder: str) -> "AsyncIterator[QdrantServerStorage]":
    from agent_memory.memories import QdrantServerStorage

    if url is None:
        raise ConfigurationError(
            "There is no server to talk to.",
            code="usage",
            recovery="Name it with --url or the environment variable QDRANT_URL.",
        )
    values = {"qdrant_url": url, "qdrant_collection": collection, "embedder": embedder, "backend": "server"}
    settings = build_settings("agent-memory", ServiceSettings, values)
    # What was embedded for the files need not be embedded again for the server.
    cache = folder_of(run.service.agent_id, run.root).vectors
    server = QdrantServerStorage(
        run.service.agent_id, settings=settings, cache=cache if cache.exists() else None
    )  # fmt: skip
    try:
        yield server
    finally:
        await server.close()
