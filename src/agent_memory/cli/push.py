"""Commands between this machine and a team's server: push, pull."""

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_memory.cli.running import Run
from agent_memory.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent_memory.cli.report import Report
    from agent_memory.storage.qdrant.storage import QdrantServerStorage
    from agent_memory.storage.qdrant.transfer import Selection

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
    from agent_memory.storage.qdrant.transfer import push as push_all
    from agent_memory.storage.qdrant.transfer import select

    async with _server(run, url, collection, embedder) as server:
        selection = await select(run.service.storage, server)
        report = _report(run, "Pushed", selection)
        try:
            with run.screen.progress() as progress:
                task = progress.add_task("Pushing", total=len(selection.missing))

                def each(moved: Any) -> None:
                    report.note(moved)
                    progress.advance(task)

                await push_all(selection.missing, server, each)
        finally:
            report.show()  # also when the server is lost half-way: what was counted is there
        await server.prepare()
    report.end()


async def pull(run: Run, url: Url = None, collection: Collection = "agent_memory", embedder: Embedder = "none") -> None:
    """Bring what is missing here from the server; nothing here is changed. May be broken off and repeated."""
    from agent_memory.storage.qdrant.transfer import select

    async with _server(run, url, collection, embedder) as server:
        selection = await select(server, run.service.storage)
    report = _report(run, "Pulled", selection)
    try:
        with run.screen.progress() as progress:
            task = progress.add_task("Pulling", total=len(selection.missing))

            def each(restored: Any) -> None:
                report.note(restored)
                progress.advance(task)

            await run.service.restore(selection.missing, each, run.caller, trusted=True)
    finally:
        report.show()
    report.end()


def _report(run: Run, done: str, selection: "Selection") -> "Report":
    from agent_memory.cli.report import Report

    there = {"present": selection.present, "differs": selection.differs, "forgotten": selection.forgotten}
    counts = {outcome: len(ids) for outcome, ids in there.items()}
    return Report(run.screen, done, [memory.id for memory in selection.missing], there="there", more=counts)


@asynccontextmanager
async def _server(run: Run, url: str | None, collection: str, embedder: str) -> "AsyncIterator[QdrantServerStorage]":
    from agent_memory.settings import ServiceSettings, build_settings
    from agent_memory.storage import folder_of
    from agent_memory.storage.qdrant.storage import QdrantServerStorage

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
