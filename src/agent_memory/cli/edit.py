"""`agent-memory update`, `edit` and `pin`: change memories."""

import asyncio
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.cli.decisions import is_terminal, read_key
from agent_memory.cli.drafts import check_terminal, open_draft, open_editor
from agent_memory.cli.exit_codes import get_exit_code
from agent_memory.cli.formats import BlockText, read_yaml, to_yaml
from agent_memory.cli.options import (
    MemoryId,
    MemoryIds,
    NewCategory,
    NotSecret,
    Offered,
    parse_moment,
    parse_tags,
    resolve_ids,
)
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.text import describe_end, minute
from agent_memory.errors import AgentMemoryError, ValidationError
from agent_memory.files.person_lists import exempt_guesses
from agent_memory.memory.views import shorten_line, view_promotion, view_similar
from agent_memory.models import Memory, offered_fields
from agent_memory.models.text import one_line
from agent_memory.redaction.redactor import list_guesses

if TYPE_CHECKING:
    from agent_memory.memory import Stored, Updated


_MAX_INPUT_CHARS = 100_000
"""Most characters to read from stdin. The service refuses a tenth of it."""

_LINE_CHARS: Final = 80
"""Width of a line that names a memory to compare."""


@dataclass(frozen=True, kw_only=True)
class ChangeOptions:
    """Options of `update`."""

    content: Annotated[
        str | None, typer.Option("--content", metavar="TEXT", help="The new text; '-' reads it from stdin.")
    ] = None
    category: NewCategory = None
    tag: Annotated[list[str] | None, typer.Option("--tag", "-t", metavar="TAG", help="Add a tag; repeatable.")] = None
    untag: Annotated[list[str] | None, typer.Option("--untag", metavar="TAG", help="Remove a tag.")] = None
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="DATE", help="Day after which it is no longer found; 'never' for none."),
    ] = None
    project: Annotated[
        str | None, typer.Option("--project", metavar="NAME", help="Project of the memory; '' for none.")
    ] = None
    pin: Annotated[bool, typer.Option("--pin", help="Keep it at the top of the scratchpad.")] = False
    unpin: Annotated[bool, typer.Option("--unpin", help="Do not keep it there.")] = False
    not_secret: NotSecret = False


@command(ChangeOptions, Offered)
async def update(run: AgentContext, memory_id: MemoryId) -> None:
    """Change fields of a memory; the other fields stay."""
    new = run.get_options(ChangeOptions)
    if new.pin and new.unpin:
        raise typer.BadParameter("--pin and --unpin exclude each other", param_hint="--pin")
    (memory_id,) = await resolve_ids(run.service, [memory_id])
    changes = run.values(Offered)
    if new.content is not None:
        changes["content"] = read_new_text(run, new.content, not_secret=new.not_secret)
    if new.category is not None:
        changes["category"] = await run.category(new.category)
    if new.tag or new.untag:
        before, removed_tags = (await run.service.get(memory_id)).tags, set(parse_tags(new.untag))
        changes["tags"] = [tag for tag in dict.fromkeys([*before, *parse_tags(new.tag)]) if tag not in removed_tags]
    if new.expires is not None:
        changes["expires_at"] = (
            None if new.expires == "never" else parse_moment(new.expires, "--expires", end=True, is_ahead=True)
        )
    if new.project is not None:
        changes["project"] = new.project
    if new.pin or new.unpin:
        changes["pinned"] = new.pin
    if not changes:
        raise ValidationError(
            "No change was given.",
            code="usage",
            recovery="Use one of --content, --category, --tag, --untag, --expires, --project, --pin and --unpin.",
        )
    updated = await run.service.update(memory_id, changes, run.caller)
    show_updated(run, updated)
    if updated.redacted:
        await offer_keeping(run, memory_id, changes.get("content", ""))


async def offer_keeping(run: AgentContext, memory_id: str, text: str) -> None:
    """Offer to store the original text if only guessed secrets were removed."""
    guesses = list_guesses(text)
    if not guesses:
        return
    if not (is_terminal() and run.screen.form == "text"):
        run.screen.hint("If it is not a secret, repeat the command with --not-secret.")
        return
    what = ", ".join(f'"{guess}"' for guess in guesses)
    if read_key(run, f"Is {one_line(what)} a secret? n: no, store it as it is; any other key: yes ") == "n":
        exempt_guesses(run.root, text)
        await run.service.update(memory_id, {"content": text}, run.caller)
        run.screen.show(f"{memory_id} has the text as you wrote it.")


def show_updated(run: AgentContext, updated: "Updated") -> None:
    """Print what an update changed."""
    memory_id, what = updated.memory.id, ", ".join(updated.fields)
    document = {"memory_id": memory_id, "changed": list(updated.fields), "redacted": list(updated.redacted)}
    run.screen.document({**document, "similar": view_similar(updated.similar)})
    note_redacted(run, updated.redacted)
    run.screen.show(f"Changed {what} of {memory_id}." if what else "Nothing was changed.")
    if "expires_at" in updated.fields and updated.memory.expires_at is not None:
        run.screen.note(f"Found until {describe_end(updated.memory.expires_at)}.")
    note_memories_to_compare(run, updated)
    if what:
        run.hint_undo(memory_id)


def note_memories_to_compare(run: AgentContext, written: "Stored | Updated") -> None:
    """Print older memories to compare with a written one, conflicts first."""
    conflicts = [conflict.older for conflict in written.suspects]
    conflict_ids = {memory.id for memory in conflicts}
    similar = [memory for memory in written.similar if memory.id not in conflict_ids]
    for title, memories in (("Conflict", conflicts), ("Similar", similar)):
        for memory in memories:
            ends = f"{title}: {memory.id}", f"({memory.timestamp:%Y-%m-%d})"
            text = shorten_line(memory.content, _LINE_CHARS - len(" ".join(ends)) - len(' ""'))
            run.screen.note(f'{ends[0]} "{text}" {ends[1]}')
    if conflicts:
        run.screen.hint("Decide with `agent-memory conflicts`.")


async def _promote(run: AgentContext, memory_id: str) -> None:
    promoted = await run.service.promote(memory_id, run.caller)
    run.screen.document(view_promotion(promoted))
    what = "is in the scratchpad now" if promoted.promoted else "was in the scratchpad already"
    evicted = f" {promoted.evicted} had to leave it." if promoted.evicted else ""
    run.screen.show(f"{memory_id} {what}, one of {promoted.scratchpad_size}.{evicted}")
    if promoted.promoted:
        run.hint_undo(memory_id)


async def pin(
    run: AgentContext,
    memory_id: MemoryIds,
    *,
    remove: Annotated[bool, typer.Option("--remove", help="No longer keep them at the top.")] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Put them into the scratchpad now, without keeping them at the top.")
    ] = False,
) -> None:
    """Keep memories at the top of the scratchpad, or stop that."""
    if remove and once:
        raise ValidationError("--remove and --once exclude each other.", code="usage")
    if remove:
        await _set_pinned(run, memory_id, pinned=False)
        return
    if once:
        for promoted_id in await resolve_ids(run.service, memory_id):
            await _promote(run, promoted_id)
        return
    for memory in await _set_pinned(run, memory_id, pinned=True):
        if memory.trust == "low":
            run.screen.note(f"{memory.id} came from an untrusted source, so the scratchpad does not show it.")


async def _set_pinned(run: AgentContext, words: list[str], *, pinned: bool) -> "list[Memory]":
    memories, documents = [], []
    state = "pinned" if pinned else "not pinned"
    for memory_id in await resolve_ids(run.service, words):
        updated = await run.service.update(memory_id, {"pinned": pinned}, run.caller)
        changed = bool(updated.fields)
        memories.append(updated.memory)
        documents.append({"memory_id": memory_id, "pinned": pinned, "changed": changed})
        run.screen.document(documents[0] if len(documents) == 1 else {"memories": documents})
        run.screen.show(f"{memory_id} is {state} now." if changed else f"{memory_id} was {state} already.")
        if changed:
            run.hint_undo(memory_id)
    return memories


def note_redacted(run: AgentContext, kinds: tuple[str, ...]) -> None:
    """Report removed secrets, if any."""
    if kinds:
        run.screen.note(f"A secret was removed ({', '.join(kinds)}); secrets are never stored.")


def read_text(text: str) -> str:
    """Return the text, or stdin if it is `-`."""
    return sys.stdin.read(_MAX_INPUT_CHARS) if text == "-" else text


def read_new_text(run: AgentContext, text: str, *, not_secret: bool) -> str:
    """Return a text as `read_text`; exempt guessed secrets if `not_secret`."""
    text = read_text(text)
    if not_secret:
        exempt_guesses(run.root, text)
    return text


_EDITABLE: Final = (
    "content", "category", "tags", "pinned", "trust", "source", "confidence", "importance", "observed_at", "expires_at",
    "links", "supersedes", "metadata", *offered_fields(Memory),
)  # fmt: skip

_ALWAYS_SHOWN: Final = ("content", "category", "tags", "pinned", "trust")
_HEADER: Final = (
    "{id}, stored {stored}. Change what you like, save and close; close unchanged to leave it as it is. "
    "A field taken out gets its default. Fields not set: {others}."
)

_HEADER_WIDTH: Final = 78


async def edit(run: AgentContext, memory_id: MemoryId) -> None:
    """Change a memory in $VISUAL or $EDITOR, as YAML."""
    check_terminal()
    (memory_id,) = await resolve_ids(run.service, [memory_id])
    memory = await run.service.get(memory_id)
    original = render(memory)
    with open_draft(run.service, memory.id, original) as path:
        while True:
            try:
                await asyncio.to_thread(open_editor, path)
                changes = difference(original, path.read_text(encoding="utf-8", errors="surrogateescape"))
                if not changes:
                    run.screen.document({"memory_id": memory.id, "changed": []})
                    run.screen.show("Nothing was changed.")
                    return
                updated = await run.service.update(memory.id, changes, run.caller)
                break
            except AgentMemoryError as error:
                _ask_again(run, error, path, original)
    show_updated(run, updated)


def _ask_again(run: AgentContext, error: AgentMemoryError, path: Path, original: str) -> None:
    """Ask whether to edit a refused draft again.

    After a no, its text is printed, since no file keeps it.

    Raises:
        AgentMemoryError: The draft was not changed.
        typer.Exit: The answer was no.
    """
    if not path.exists() or path.read_bytes() == original.encode():
        raise error
    run.screen.error(error)
    if run.screen.ask("Edit it again?"):
        return
    run.screen.note("Nothing was changed. Your text was:")
    run.screen.note(path.read_text(encoding="utf-8", errors="replace"), style="")
    raise typer.Exit(get_exit_code(error))


def render(memory: "Memory") -> str:
    """Return a memory for the editor, without fields at their default."""
    record = {**{name: getattr(memory, name) for name in _ALWAYS_SHOWN}, **memory.to_record()}
    shown: dict[str, Any] = {name: record[name] for name in _EDITABLE if name in record}
    omitted = ", ".join(name for name in _EDITABLE if name not in shown) or "none"
    header = _HEADER.format(id=memory.id, stored=minute(memory.timestamp), others=omitted)
    comment = textwrap.fill(header, _HEADER_WIDTH, initial_indent="# ", subsequent_indent="# ")
    return f"{comment}\n{to_yaml({**shown, 'content': BlockText(memory.content)})}"


def difference(original: str, edited: str) -> dict[str, Any]:
    """Return the changed fields, None for one taken out.

    Raises:
        ValidationError: The edited text is not a YAML mapping of known fields.
    """
    before, after = _parse(original), _parse(edited)
    unknown = [str(name) for name in after if name not in _EDITABLE]
    if unknown:
        raise ValidationError(f"These fields cannot be edited: {', '.join(unknown)}.")
    if after.get("content") is None:
        raise ValidationError("The content is empty.", recovery="Run `agent-memory forget ID` to forget a memory.")
    changed = [name for name in (*before, *after) if before.get(name) != after.get(name)]
    return {name: after.get(name) for name in dict.fromkeys(changed)}


def _parse(text: str) -> dict[Any, Any]:
    value = read_yaml(text)
    if not isinstance(value, dict):
        raise ValidationError("The text is not a YAML mapping of fields.")
    return value
