"""How a command runs: its common options, the service it is handed, and the exit code it ends with."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Final, Literal, ParamSpec

import typer

from agent_memory.errors import AgentMemoryError, BusyError, UnknownIdError, refused_by_system

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from pathlib import Path

    from agent_memory.cli.screen import Screen
    from agent_memory.service import Caller, MemoryService

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
BUSY: Final = 4
STOPPED: Final = 130
"""As shells count a process that SIGINT ends: 128 + 2."""
SESSION_ID: Final = "cli"
"""What events and memories carry as their session when a person works at the command line."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a command works with."""

    service: MemoryService
    caller: Caller
    screen: Screen
    root: Path


@dataclass(frozen=True, slots=True)
class Place:
    """What a command works with that is about no one agent."""

    screen: Screen
    root: Path


_LOGGED_ERROR: Final = re.compile(r'\berror="((?:[^"\\]|\\.)*)"')
USAGE_ERROR: Final[Any] = typer.BadParameter.__bases__[0]
"""What typer and click raise for a wrong option, wherever a version of them keeps the class."""
_USAGE_CODES: Final = frozenset({"invalid_filter", "usage", "unknown_category", "ambiguous_id"})

P = ParamSpec("P")
Body = Callable[Concatenate[Run, P], Awaitable[None]]
PlaceBody = Callable[Concatenate[Place, P], Awaitable[None]]


def complete_agent(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the agents a shell may complete to; silence when they cannot be listed."""
    from agent_memory.files.layout import agents_under

    try:
        return [name for name in agents_under(root_given(ctx)) if name.startswith(incomplete)]
    except AgentMemoryError:
        return []


_AGENT_OPTION: Final[Any] = {
    "metavar": "NAME",
    "help": "Whose memory; may be left out if there is only one agent.",
    "autocompletion": complete_agent,
}
_ROOT_OPTION: Final[Any] = {"metavar": "PATH", "help": "Folder of all agents; ~/.amplifier/memory if not given."}
Agent = Annotated[str | None, typer.Option("--agent", "-a", envvar="AGENT_MEMORY_AGENT", **_AGENT_OPTION)]
Root = Annotated[str | None, typer.Option("--root", envvar="AGENT_MEMORY_ROOT", **_ROOT_OPTION)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
# The same before the name of a command, where the environment has no say: an option after the name wins over it.
AgentBefore = Annotated[str | None, typer.Option("--agent", "-a", **_AGENT_OPTION)]
RootBefore = Annotated[str | None, typer.Option("--root", **_ROOT_OPTION)]
JsonBefore = Json
Output = Annotated[
    Literal["text", "table", "csv", "jsonl", "json"] | None,
    typer.Option("--format", metavar="FORM", help="text, table, csv, jsonl or json."),
]
Fields = Annotated[
    str | None, typer.Option("--fields", metavar="A,B", help="Only these fields, in this order; a table if no format.")
]
_ROWS: Final[Any] = (("output", Output, None), ("fields", Fields, None))


def runnable(body: Body[P], *, may_be_new: bool = False, rows: bool = False) -> Callable[..., None]:
    """Return what typer calls for `body`: its own parameters and --agent, --root, --json; errors become exit codes.

    Args:
        body: Asynchronous; its first parameter is the `Run`, the others are typer's.
        may_be_new: Whether it may begin the memory of an agent that does not exist yet.
        rows: Whether it prints rows, which can be a table, CSV or JSON lines (`Screen.rows`).
    """

    def run(ctx: typer.Context, **own: Any) -> None:
        agent = agent_given(ctx, own.pop("agent"))
        with _screen(ctx, own) as (screen, root):
            asyncio.run(_run(body, screen, agent, root, may_be_new, own))

    return _with_options(run, body, [*(_ROWS if rows else ()), ("agent", Agent, None)])


def rooted(body: PlaceBody[P], *, rows: bool = False) -> Callable[..., None]:
    """Return what typer calls for a `body` that is about no one agent: its first parameter is the `Place`."""

    def run(ctx: typer.Context, **own: Any) -> None:
        if ctx.invoked_subcommand is not None:
            return  # a group, whose command is what was meant
        with _screen(ctx, own) as (screen, root):
            asyncio.run(_run_in_place(body, Place(screen, root), own))

    return _with_options(run, body, list(_ROWS if rows else ()))


@contextlib.contextmanager
def exit_codes(screen: Screen) -> Iterator[None]:
    """Turn an error of ours into its two sentences on stderr, or into JSON, and its exit code.

    Raises:
        typer.Exit: With the code.
    """
    try:
        yield
    except AgentMemoryError as error:
        screen.error(error)
        raise typer.Exit(exit_code(error)) from None
    except KeyboardInterrupt:
        screen.stopped()
        raise typer.Exit(STOPPED) from None
    except (OSError, MemoryError, RuntimeError) as error:
        if (refused := refused_by_system(error)) is None:
            raise
        screen.error(refused)
        raise typer.Exit(FAILED) from None
    finally:
        screen.flush()


def exit_code(error: AgentMemoryError) -> int:
    """Return the code a process ends with because of `error`."""
    if isinstance(error, UnknownIdError):
        return NOT_FOUND
    if isinstance(error, BusyError):
        return BUSY
    return USAGE if error.code in _USAGE_CODES else FAILED


def wants_json(args: Sequence[str] | None) -> bool:
    """Tell whether a command line asks for JSON, before anything has parsed it."""
    words = sys.argv[1:] if args is None else list(args)
    return "--json" in words or "--format=json" in words or ("--format", "json") in pairwise(words)


@contextlib.contextmanager
def usage_errors_in_json() -> Iterator[None]:
    """Print what is wrong with the command line the way other errors are printed for programs, and exit.

    Raises:
        SystemExit: With the code for wrong usage.
    """
    try:
        yield
    except USAGE_ERROR as error:
        from agent_memory.cli.text import to_json

        message = str(getattr(error, "format_message", error.__str__)())
        recovery = "See `agent-memory help COMMAND`."
        sys.stdout.write(
            to_json({"error": {"code": "usage", "message": message, "recovery": recovery}}, indent=2) + "\n"
        )
        sys.exit(USAGE)


def root_given(ctx: typer.Context) -> Path:
    """Return the folder of all agents that a command line names, before or after the command."""
    from agent_memory.files.layout import root_of
    from agent_memory.settings import ServiceSettings

    return root_of(_said(ctx, "root", ctx.params.get("root")) or ServiceSettings().storage_root)


def agent_given(ctx: typer.Context, said: str | None) -> str | None:
    """Return the agent that a command line names, before or after the command."""
    named: str | None = _said(ctx, "agent", said)
    return named


@contextlib.contextmanager
def screen_of(ctx: typer.Context, *, json: bool) -> Iterator[Screen]:
    """Hand out the screen of a command that says --json itself; what goes wrong meanwhile becomes an exit code."""
    from agent_memory.cli.screen import Screen

    screen = Screen(form="json" if json or ctx.find_root().params.get("as_json") else "text")
    with exit_codes(screen):
        yield screen


@contextlib.contextmanager
def _screen(ctx: typer.Context, own: dict[str, Any]) -> Iterator[tuple[Screen, Path]]:
    """Take the common options out of `own`; hand out what they ask for."""
    from agent_memory.cli.screen import Screen

    as_json = own.pop("as_json") or bool(ctx.find_root().params.get("as_json"))
    own.pop("root")
    form, fields = own.pop("output", None), own.pop("fields", None)
    if as_json and form not in {None, "json"}:
        raise typer.BadParameter(f"--json and --format {form} cannot both be", param_hint="--format")
    named = [name.strip() for name in fields.split(",") if name.strip()] if fields else None
    screen = Screen(form="json" if as_json else form or ("table" if named else "text"), fields=named)
    with exit_codes(screen):
        yield screen, root_given(ctx)


def _said(ctx: typer.Context, name: str, value: Any) -> Any:
    """Return an option's value: after the command's name, else before it, else from the environment."""
    source = ctx.get_parameter_source(name)
    if source is not None and source.name == "COMMANDLINE":
        return value
    before = ctx.find_root().params.get(name)
    return value if before is None else before


def _with_options(run: Callable[..., None], body: Any, more: list[tuple[str, Any, Any]]) -> Callable[..., None]:
    """Give `run` the signature that typer reads: the body's own parameters, then the common ones."""
    signature = inspect.signature(body, eval_str=True)
    own = list(signature.parameters.values())[1:]
    common = [_option(*each) for each in (*more, ("root", Root, None), ("as_json", Json, False))]
    context = _option("ctx", typer.Context, inspect.Parameter.empty)
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (context, *own, *common)]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__doc__, run.__name__ = body.__doc__, body.__name__
    return run


async def _run(
    body: Callable[..., Awaitable[None]],
    screen: Screen,
    agent: str | None,
    root: Path,
    may_be_new: bool,  # noqa: FBT001 - private
    own: dict[str, Any],
) -> None:
    from agent_memory.cli.choosing import choose_agent
    from agent_memory.service import Caller

    name = choose_agent(agent, root, may_be_new=may_be_new)
    with warnings_on(screen):
        async with opened(name, root) as service:
            caller = Caller(SESSION_ID)
            await service.pad.notice(caller)
            await body(Run(service, caller, screen, root), **own)


async def _run_in_place(body: Callable[..., Awaitable[None]], place: Place, own: dict[str, Any]) -> None:
    with warnings_on(place.screen):
        await body(place, **own)


@contextlib.asynccontextmanager
async def opened(agent: str, root: Path) -> AsyncIterator[MemoryService]:
    """Open an agent's memory for the length of the block."""
    from agent_memory.service import open_service
    from agent_memory.settings import ServiceSettings

    service = open_service(agent, ServiceSettings(storage_root=str(root)))
    try:
        yield service
    finally:
        await service.close()


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


def _option(name: str, annotation: Any, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
