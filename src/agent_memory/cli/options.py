"""Options that several commands share, and their values."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer
from pydantic import BaseModel
from typer.main import get_command

from agent_memory.cli.command_groups import AGENT, ROOT, WHOSE, Json
from agent_memory.errors import AgentMemoryError, IdentityError, UnknownIdError, UnsupportedError, ValidationError
from agent_memory.files.layout import agents_under, folder_of, read_used_agent, resolve_root
from agent_memory.late import compile_late
from agent_memory.models import (
    ANY_STATE,
    CATEGORIES,
    EVERYTHING,
    Listing,
    Memory,
    SearchFilters,
    is_memory_id,
    offered_fields,
    parse_bound,
)
from agent_memory.models.identifiers import DEFAULT_AGENT
from agent_memory.models.record import normalise_tags
from agent_memory.models.text import one_line
from agent_memory.settings import PERSON_SECONDS, ServiceSettings

if TYPE_CHECKING:
    from agent_memory.memory import MemoryService

_COMPLETED: Final = 50
"""Ids offered to a shell at most."""
_AGENTS_LISTED: Final = 20
_IDS_LISTED: Final = 10
_TEXT_CHARS: Final = 50
_BEGINNING: Final = compile_late(r"(?:mem-)?([0-9a-f]{1,12})")
OTHER_ID: Final = compile_late(r"(?:res|epi|top|ent|rel|sum)-[0-9a-f]{4,12}")
"""ID of a record that is not a memory, or the beginning of one."""
_SHORT: Final = compile_late(r"(?:[a-z]{3}-)?[0-9a-f]{1,3}")
"""Beginning of an ID that is too short for a command that changes something: "Forget 1" is the number of a line."""


# -- what a shell may complete to -------------------------------------------------------------------------------------


def list_agents(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return agents for shell completion, none if they cannot be listed."""
    with contextlib.suppress(AgentMemoryError):
        return [name for name in agents_under(get_root(ctx)) if name.startswith(incomplete)]
    return []


def complete_category(incomplete: str) -> list[str]:
    """Return the built-in categories a shell may complete to."""
    return [name for name in CATEGORIES if name.startswith(incomplete)]


def complete_id(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return IDs for shell completion, newest first, with their texts."""

    async def ids() -> list[tuple[str, str]]:
        root = get_root(ctx)
        async with open_service(choose_agent(get_parameter(ctx, "agent"), root, may_be_new=False), root) as service:
            listing = Listing(filters=EVERYTHING, states=ANY_STATE, beginning=incomplete, limit=_COMPLETED)
            records = (await service.storage.browse(listing)).records
        return [(memory.id, one_line(memory.content)[:60]) for memory in records]

    with contextlib.suppress(AgentMemoryError):
        return asyncio.run(ids())
    return []


# -- options and arguments --------------------------------------------------------------------------------------------

_NAMED: Final[Any] = {**AGENT, "envvar": "AGENT_MEMORY_AGENT"}
_WHOSE_OR_ALL: Final = "Agent to work on; all if left out."
_ID_HELP: Final = "Id of a memory, e.g. mem-a3f2c1b4e5d6, or the beginning of one."
_CATEGORY: Final[Any] = {"metavar": "NAME", "autocompletion": complete_category}

MemoryId = Annotated[str, typer.Argument(metavar="ID", help=_ID_HELP, autocompletion=complete_id)]
MemoryIds = Annotated[
    list[str], typer.Argument(metavar="ID", help=_ID_HELP.replace("Id of", "Ids of"), autocompletion=complete_id)
]
NewCategory = Annotated[str | None, typer.Option("--category", "-c", help="Category of the memory.", **_CATEGORY)]
NotSecret = Annotated[
    bool,
    typer.Option(
        "--not-secret", help="Nothing in the text is a secret. Keys in the form of a known provider are still removed."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """Options of every command."""

    root: Annotated[str | None, typer.Option("--root", envvar="AGENT_MEMORY_ROOT", **ROOT)] = None
    as_json: Json = False


@dataclass(frozen=True, kw_only=True)
class AgentOption:
    """Option that names the agent."""

    agent: Annotated[str | None, typer.Option("--agent", "-a", help=WHOSE, **_NAMED)] = None


@dataclass(frozen=True, kw_only=True)
class OptionalAgentOption:
    """Option that names the agent; all agents if left out."""

    agent: Annotated[str | None, typer.Option("--agent", "-a", help=_WHOSE_OR_ALL, **_NAMED)] = None


@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """Options for the form of printed rows."""

    output: Annotated[
        Literal["text", "table", "csv", "jsonl", "json"] | None,
        typer.Option("--format", metavar="FORM", help="text, table, csv, jsonl or json."),
    ] = None
    fields: Annotated[
        str | None,
        typer.Option("--fields", metavar="A,B", help="Show only these fields, in this order; as a table by default."),
    ] = None
    no_pager: Annotated[bool, typer.Option("--no-pager", help="Print a long list without a pager.")] = False


@dataclass(frozen=True, kw_only=True)
class FilterOptions:
    """Filters of memories by kind and day."""

    category: Annotated[str | None, typer.Option("--category", "-c", help="Only this category.", **_CATEGORY)] = None
    tag: Annotated[
        list[str] | None, typer.Option("--tag", "-t", metavar="TAG", help="Only with this tag; repeatable.")
    ] = None
    project: Annotated[str | None, typer.Option("--project", metavar="NAME", help="Only of this project.")] = None
    since: Annotated[
        str | None, typer.Option("--since", metavar="DATE", help="Said on or after, e.g. 2026-01-30, yesterday, 7d.")
    ] = None
    until: Annotated[str | None, typer.Option("--until", metavar="DATE", help="Said on or before.")] = None
    items: Annotated[bool, typer.Option("--items", help="Also list passages and turns; no effect on search.")] = False

    def bounds(self) -> dict[str, datetime | None] | None:
        """Return begin and end of the requested time, or None.

        Raises:
            typer.BadParameter: One of them is not a date, or the end is before the beginning.
        """
        start, end = parse_moment(self.since, "--since", end=False), parse_moment(self.until, "--until", end=True)
        if start and end and start > end:
            raise typer.BadParameter(f"{self.since} is after --until {self.until}", param_hint="--since")
        return {"start": start, "end": end} if start or end else None


def _build_options(model: type[BaseModel]) -> type:
    """Return a group with one option for each offered field of `model`."""
    options: list[tuple[str, Any, None]] = [
        (name, Annotated[kind, typer.Option(f"--{name.replace('_', '-')}", help=description)], None)
        for name, (kind, description) in offered_fields(model).items()
    ]
    return make_dataclass(f"{model.__name__}Options", options, frozen=True, kw_only=True)


Offered: Final = _build_options(Memory)
OfferedFilters: Final = _build_options(SearchFilters)


def build_parameters(*groups: type) -> list[Any]:
    """Return the parameters for the fields of `groups`."""
    parameters = []
    for group in groups:
        app = typer.Typer(add_completion=False)
        app.command()(group)
        parameters += get_command(app).params
    return parameters


# -- what is said in them ---------------------------------------------------------------------------------------------


def get_root(ctx: typer.Context) -> Path:
    """Return the root folder given before or after the command."""
    return resolve_root(get_parameter(ctx, "root") or ServiceSettings().storage_root)


def get_parameter(ctx: typer.Context, name: str) -> Any:
    """Return an option from after the command, before it, or the environment."""
    context: Any = ctx
    while context is not None:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            return get_parameters(context)[name]
        context = context.parent
    return get_parameters(ctx).get(name)


def get_parameters(ctx: typer.Context) -> dict[str, Any]:
    """Return parameter values of a context, with those taken out of `params`."""
    return {**ctx.params, **getattr(ctx, "taken", {})}


def choose_agent(name: str | None, root: Path, *, may_be_new: bool) -> str:
    """Return the agent: named, chosen by `use`, or the only one.

    Args:
        name: Agent named by the user, or None.
        root: Folder of all agents.
        may_be_new: True if the command may create the agent.

    Raises:
        IdentityError: The named agent does not exist, or the choice is ambiguous.
        ValidationError: The name cannot name an agent.
        StorageError: The folders cannot be read.
    """
    agents = agents_under(root)
    if name is not None:
        folder = folder_of(name, root)
        if may_be_new or folder.path.exists():
            return folder.agent_id
        raise IdentityError(
            f"No agent {name!r} under {root}." + (f" There are: {_format_list(agents)}." if agents else ""),
            code="unknown_agent",
            recovery=f"Check the name and --root; `agent-memory store --agent {name} TEXT` creates it.",
        )
    if not agents:
        raise IdentityError(
            f"No agents under {root} yet.",
            code="no_agents",
            recovery="Create one with `agent-memory store TEXT` or `agent-memory ingest FILE`, or name their "
            "folder with --root.",
        )
    if (used := read_used_agent(root)) in agents:
        return used
    if len(agents) > 1:
        raise IdentityError(
            f"There are {len(agents)} agents under {root}: {_format_list(agents)}.",
            code="which_agent",
            recovery="Name one with --agent NAME or the environment variable AGENT_MEMORY_AGENT, or choose one "
            "for all commands with `agent-memory agents use NAME`.",
        )
    return agents[0]


def choose_served_agent(name: str | None, root: Path) -> str:
    """Return the agent for a host; by default, the default agent.

    Raises:
        IdentityError, ValidationError, StorageError: As `choose_agent`.
    """
    if name is None and not agents_under(root):
        name = DEFAULT_AGENT
    return choose_agent(name, root, may_be_new=True)


def _format_list(names: list[str]) -> str:
    rest = len(names) - _AGENTS_LISTED
    return ", ".join(names[:_AGENTS_LISTED]) + (f" and {rest} more" if rest > 0 else "")


@contextlib.asynccontextmanager
async def open_service(agent: str, root: Path) -> "AsyncIterator[MemoryService]":
    """Open an agent's memory for the length of the block."""
    from agent_memory.memory import open_service
    from agent_memory.memory.features import attach_features, finish_purges

    service = open_service(agent, ServiceSettings(storage_root=str(root), lock_timeout=PERSON_SECONDS))
    attach_features(service)
    try:
        await finish_purges(service)
        yield service
    finally:
        await service.close()


async def resolve_ids(
    service: "MemoryService", words: Sequence[str], *, forgotten: bool = False, read_only: bool = False
) -> list[str]:
    """Return full IDs for `words`, each once, in order.

    Args:
        service: Service of the agent.
        words: IDs or beginnings of IDs, with or without `mem-`.
        forgotten: True to include forgotten memories.
        read_only: True to accept a beginning of any length, if nothing is changed.

    Raises:
        UnknownIdError: No ID matches.
        ValidationError: Several IDs match, or the beginning is too short.
        StorageError: The memories cannot be read.
    """
    if not read_only:
        for word in words:
            check_beginning(word)
    gone: Mapping[str, str] = {}
    if forgotten and not all(map(is_memory_id, words)):
        with contextlib.suppress(UnsupportedError):  # what is asked next says so
            gone = {memory.id: memory.content for memory, _ in await service.history.forgotten()}
    return list(dict.fromkeys([await _resolve_id(service, word, gone) for word in words]))


def check_beginning(word: str) -> None:
    """Refuse a short beginning of an ID, as 0 or mem-0.

    Raises:
        ValidationError: Nothing was changed.
    """
    if _SHORT.fullmatch(word.lower()):
        raise ValidationError(
            f"{word!r} is too short for the start of an ID; nothing was changed.",
            code="ambiguous_id",
            recovery="Give at least 4 characters of the ID; `agent-memory list` shows IDs.",
        )


async def _resolve_id(service: "MemoryService", word: str, gone: Mapping[str, str]) -> str:
    if is_memory_id(word):
        return word
    beginning = _BEGINNING.fullmatch(word.lower())
    listed, texts, total = f"mem-{beginning[1]}" if beginning else "", dict[str, str](), 0
    if listed:
        listing = Listing("oldest", EVERYTHING, ANY_STATE, beginning=listed, limit=_IDS_LISTED)
        page = await service.storage.browse(listing)
        texts = {memory.id: memory.content for memory in page.records}
        more = {
            memory_id: text
            for memory_id, text in gone.items()
            if memory_id.startswith(listed) and memory_id not in texts
        }
        texts, total = texts | more, page.total + len(more)
    if not total:
        from agent_memory.redaction import quoted  # its patterns load only for this error

        hint = f"Run `agent-memory why {word}` to see records of other kinds." if OTHER_ID.fullmatch(word) else None
        raise UnknownIdError(f"No memory {quoted(word)}.", recovery=hint)
    if total == 1:
        return next(iter(texts))
    lines = [f"  {listed_id}  {one_line(text)[:_TEXT_CHARS]}" for listed_id, text in list(texts.items())[:_IDS_LISTED]]
    lines += [f"  … and {total - _IDS_LISTED} more"] if total > _IDS_LISTED else []
    raise build_ambiguous(word, total, "\n".join(["", *lines]))


def build_ambiguous(word: str, count: int, listed: str) -> ValidationError:
    """Return the error for a beginning of several IDs."""
    recovery = f"Give more characters of its ID:{listed}"
    return ValidationError(f"{count} IDs begin with {word!r}.", code="ambiguous_id", recovery=recovery)


def parse_moment(text: str | None, option: str, *, end: bool, is_ahead: bool | None = False) -> datetime | None:
    """Return the moment of a date on the command line, or None.

    Args:
        text: Date, date and time, or words such as "last week".
        option: Name of the option.
        end: True if a bare date means the end of that day.
        is_ahead: True if "Friday" and "7d" are in the future, False if no words may name a day in the future.

    Raises:
        typer.BadParameter: The text is not a date.
    """
    try:
        return None if text is None else parse_bound(text, end=end, is_ahead=is_ahead)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def parse_tags(tags: list[str] | None) -> list[str]:
    """Return tags the way they are stored.

    Raises:
        typer.BadParameter: There are too many, or one is too long or empty.
    """
    if not all(tag.strip() for tag in tags or []):  # as a shell makes it of a variable without a value
        raise typer.BadParameter("a tag is empty; give its text", param_hint="--tag")
    try:
        return normalise_tags(tags or [])
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--tag") from None
