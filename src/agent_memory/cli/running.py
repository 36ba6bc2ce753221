"""How a command runs: its common options, the service it is handed, and the exit code it ends with."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Final, ParamSpec

import typer

from agent_memory.errors import AgentMemoryError, BusyError, UnknownIdError, refused_by_system

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from agent_memory.cli.screen import Screen
    from agent_memory.service import Caller, MemoryService

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
BUSY: Final = 4
SESSION_ID: Final = "cli"
"""What events and memories carry as their session when a person works at the command line."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a command works with."""

    service: MemoryService
    caller: Caller
    screen: Screen
    root: Path


_LOGGED_ERROR: Final = re.compile(r'\berror="((?:[^"\\]|\\.)*)"')

P = ParamSpec("P")
Body = Callable[Concatenate[Run, P], Awaitable[None]]


def complete_agent(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the agents a shell may complete to; silence when they cannot be listed."""
    from agent_memory.cli.agents import agents_under  # noqa: PLC0415 - only when a shell asks

    try:
        return [name for name in agents_under(_root(ctx.params.get("root"))) if name.startswith(incomplete)]
    except AgentMemoryError:
        return []


Agent = Annotated[
    str | None,
    typer.Option(
        "--agent",
        "-a",
        metavar="NAME",
        envvar="AGENT_MEMORY_AGENT",
        help="Whose memory; may be left out if there is only one agent.",
        autocompletion=complete_agent,
    ),
]
Root = Annotated[
    str | None,
    typer.Option(
        "--root",
        metavar="PATH",
        envvar="AGENT_MEMORY_ROOT",
        help="Folder of all agents; ~/.amplifier/memory if not given.",
    ),
]
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON for programs.")]


def runnable(body: Body[P], *, may_be_new: bool = False) -> Callable[..., None]:
    """Return what typer calls for `body`: its own parameters and --agent, --root, --json; errors become exit codes.

    Args:
        body: Asynchronous; its first parameter is the `Run`, the others are typer's.
        may_be_new: Whether it may begin the memory of an agent that does not exist yet.
    """

    def run(agent: str | None, root: str | None, *, as_json: bool, **own: Any) -> None:
        from agent_memory.cli.screen import Screen  # noqa: PLC0415 - rich is slow to import

        screen = Screen(json=as_json)
        with exit_codes(screen):
            asyncio.run(_run(body, screen, agent, _root(root), may_be_new, own))

    signature = inspect.signature(body, eval_str=True)
    own_parameters = list(signature.parameters.values())[1:]
    common = [_option("agent", Agent, None), _option("root", Root, None), _option("as_json", Json, default=False)]
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own_parameters, *common)]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__doc__, run.__name__ = body.__doc__, body.__name__
    return run


@contextlib.contextmanager
def exit_codes(screen: Screen) -> Iterator[None]:
    """Turn an error of ours into its two sentences on stderr and its exit code.

    Raises:
        typer.Exit: With the code.
    """
    try:
        yield
    except AgentMemoryError as error:
        screen.error(error)
        raise typer.Exit(exit_code(error)) from None
    except (OSError, MemoryError, RuntimeError) as error:
        if (refused := refused_by_system(error)) is None:
            raise
        screen.error(refused)
        raise typer.Exit(FAILED) from None


def exit_code(error: AgentMemoryError) -> int:
    """Return the code a process ends with because of `error`."""
    if isinstance(error, UnknownIdError):
        return NOT_FOUND
    if isinstance(error, BusyError):
        return BUSY
    return USAGE if error.code in {"invalid_filter", "usage"} else FAILED


async def _run(
    body: Callable[..., Awaitable[None]],
    screen: Screen,
    agent: str | None,
    root: Path,
    may_be_new: bool,  # noqa: FBT001 - private
    own: dict[str, Any],
) -> None:
    from agent_memory.cli.agents import choose_agent  # noqa: PLC0415 - not before a command runs
    from agent_memory.service import Caller  # noqa: PLC0415

    name = choose_agent(agent, root, may_be_new=may_be_new)
    with warnings_on(screen):
        async with _opened(name, root) as service:
            await body(Run(service, Caller(SESSION_ID), screen, root), **own)


@contextlib.asynccontextmanager
async def _opened(agent: str, root: Path) -> AsyncIterator[MemoryService]:
    from agent_memory.host.registry import SERVICES  # noqa: PLC0415 - not before a command runs
    from agent_memory.settings import ServiceSettings  # noqa: PLC0415

    key, service = SERVICES.acquire(SESSION_ID, agent, ServiceSettings(storage_root=str(root)))
    try:
        yield service
    finally:
        await SERVICES.release(key)


@contextlib.contextmanager
def warnings_on(screen: Screen) -> Iterator[None]:
    """Show what the library logs as a warning, for as long as the block runs: a sentence each, on stderr."""
    handler = _Warnings(screen)
    logger = logging.getLogger("agent_memory")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _Warnings(logging.Handler):
    def __init__(self, screen: Screen) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        """Print the error a record is about, or the record itself."""
        text = record.getMessage()
        error = _LOGGED_ERROR.search(text)
        self._screen.note(f"Warning: {error[1] if error else text}")


def _root(given: str | None) -> Path:
    from agent_memory.settings import ServiceSettings  # noqa: PLC0415 - not before a command runs
    from agent_memory.storage.folder import root_of  # noqa: PLC0415

    return root_of(given or ServiceSettings().storage_root)


def _option(name: str, annotation: Any, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
