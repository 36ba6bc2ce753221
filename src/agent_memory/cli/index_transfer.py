"""`agent-memory index push` and `index pull`."""

import contextlib
from typing import TYPE_CHECKING, Annotated

import typer

from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.transfer_tally import TransferTally
from agent_memory.errors import ConfigurationError
from agent_memory.files.layout import folder_of
from agent_memory.models import Memory
from agent_memory.settings import ServiceSettings, build_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent_memory.engines.server_storage import QdrantServerStorage
    from agent_memory.store.memory_storage import MemoryStorage

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        envvar="QDRANT_URL",
        help="Server, such as https://host:6333; its key is read only from QDRANT_API_KEY.",
    ),
]

Collection = Annotated[str, typer.Option("--collection", metavar="NAME", help="Collection on the server.")]

Embedder = Annotated[
    str, typer.Option("--embedder", metavar="KIND", help="Embedder of the server's vectors: local, openai or none.")
]


async def push(
    run: AgentContext, url: Url = None, collection: Collection = "agent_memory", embedder: Embedder = "local"
) -> None:
    """Copy to the server what is missing there; nothing there is changed.

    An interrupted copy continues when it is repeated.
    """
    async with _server(run, url, collection, embedder) as server:
        report = await _transfer(run, "Push", await run.service.searcher.list_all(), server)
        await server.add_traces(await run.service.history.traces())
        await server.prepare()
    report.end()


@command(may_be_new=True)
async def pull(
    run: AgentContext, url: Url = None, collection: Collection = "agent_memory", embedder: Embedder = "none"
) -> None:
    """Copy from the server what is missing here; nothing here is changed.

    An interrupted copy continues when it is repeated.
    """
    async with _server(run, url, collection, embedder) as server:
        report = await _transfer(run, "Pull", [memory async for memory in server.iter_all()], None)
        await run.service.writer.import_traces(await server.traces())
    report.end()


async def _transfer(
    run: AgentContext, doing: str, memories: list[Memory], target: "MemoryStorage | None"
) -> TransferTally:
    """Copy missing memories to another storage and report each outcome."""
    place = "here" if target is None else "there"
    report = TransferTally(run.screen, f"{doing}ed", [{"id": memory.id} for memory in memories], place)
    report.counts["forgotten"] = 0
    with report.counting(f"{doing}ing") as report_outcome:
        await run.service.writer.transfer(memories, report_outcome, run.caller, to=target)
    return report


@contextlib.asynccontextmanager
async def _server(
    run: AgentContext, url: str | None, collection: str, embedder: str
) -> "AsyncIterator[QdrantServerStorage]":
    from agent_memory.engines.server_storage import QdrantServerStorage

    if url is None:
        recovery = "Name it with --url or the environment variable QDRANT_URL."
        raise ConfigurationError("No server is named.", code="usage", recovery=recovery)
    values = {"qdrant_url": url, "qdrant_collection": collection, "embedder": embedder, "backend": "server"}
    settings = build_settings("agent-memory", ServiceSettings, values)
    # The server reuses the embeddings of the files.
    cache = folder_of(run.service.agent_id, run.root).vectors
    existing = cache if cache.exists() else None
    server = QdrantServerStorage(run.service.agent_id, settings=settings, cache=existing)
    try:
        yield server
    finally:
        await server.close()
