"""`agent-memory forget`: forget memories by ID, words or all."""

import re
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.care.archive import find_stored_apart
from agent_memory.cli.archive import forget_archived, has_archive
from agent_memory.cli.compact import NO_RESTORE, compact_all
from agent_memory.cli.exit_codes import FAILED
from agent_memory.cli.framework_records import forget_verbatim
from agent_memory.cli.options import OTHER_ID, Yes, complete_id, resolve_ids
from agent_memory.cli.runtime import AgentContext
from agent_memory.cli.screen import read_line
from agent_memory.cli.text import day
from agent_memory.errors import UnknownIdError
from agent_memory.files.wording import counted
from agent_memory.knowledge.passages.items import get_source_id
from agent_memory.memory.inbox_access import has_journal
from agent_memory.memory.views import view_candidates, view_preview
from agent_memory.models import CANDIDATE, Memory
from agent_memory.models.text import brief
from agent_memory.models.verbatim import VERBATIM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.memory import ForgetCandidates

_HEX_WORD: Final = re.compile(r"[a-f]{4,12}")
"""A word such as "facade", which may be the beginning of an ID."""
_ID_FORM: Final = re.compile(r"mem-.*|[0-9a-f]{4,12}")
_NUMBERS: Final = re.compile(r"[\s,]+")
_RULE: Final = "--yes needs exactly one strong match that has all your words and the owner you name."


async def forget(
    run: AgentContext,
    memory_id: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID|WORDS", help='IDs, or words such as "Ann\'s badge".', autocompletion=complete_id),
    ] = None,
    *,
    matching: Annotated[
        str | None, typer.Option("--matching", metavar="WORDS", help="The same as WORDS without the option.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Forget all memories, after a question; can be undone.")
    ] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Reason, stored with the trace.")] = "",
    now: Annotated[bool, typer.Option("--now", help="Delete the text from the journal at once; no restore.")] = False,
    yes: Yes = False,
) -> None:
    """Forget memories and the older versions they replaced.

    They can be restored for at least 30 days; `--now`, or `archive compact --now` later, deletes the text at once.
    Words list candidates to choose from. Without a terminal, `--yes` forgets only a single strong match whose owner is
    the one named. With `--reason`, storing the same text again warns.
    """
    if [bool(memory_id), matching is not None, everything].count(True) != 1:
        raise typer.BadParameter("name one of: an ID, --matching WORDS without an ID, WORDS, or --all", param_hint="ID")
    if memory_id and await are_words(run, memory_id):
        matching, memory_id = " ".join(memory_id), None
    if everything:
        undo_args, until = await forget_all(run, reason=reason, yes=yes, now=now)
    elif matching is not None:
        undo_args, until = await forget_matching(run, matching, reason=reason, yes=yes, now=now)
    else:
        undo_args, until = await _forget_named(run, memory_id or [], reason=reason, yes=yes, now=now)
    if now:
        await compact_all(run)
    elif until is not None:
        run.hint_undo(undo_args)
        run.screen.hint(
            f"Undo is possible until {day(until)} at least; the text stays in memories.yaml until then. "
            "Run `agent-memory archive compact --now` to delete it at once.",
            style="dim",
        )


async def _forget_named(
    run: AgentContext, memory_ids: list[str], *, reason: str, yes: bool, now: bool
) -> tuple[str, datetime | None]:
    memory_ids = await forget_verbatim(run, memory_ids, yes=yes, now=now)
    memory_ids = await forget_archived(run, memory_ids, reason=reason, yes=yes, now=now)
    if not memory_ids:
        return "", None
    resolved_ids = await resolve_ids(run.service, memory_ids)
    memories = [await run.service.get(memory_id) for memory_id in resolved_ids]
    if not yes:
        await _confirm(run, memories, now=now)
    older = {memory.id: list(await run.service.storage.older_versions(memory.id)) for memory in memories}
    outcome = await run.service.writer.deletion.forget(resolved_ids, run.caller, reason=reason)
    until = None if now else outcome.kept_until
    documents: list[dict[str, Any]] = [
        {"memory_id": memory.id, "forgotten": True, "older_versions": older[memory.id], **_view_until(until)}
        for memory in outcome.memories
    ]
    also = {"talk": [memory.id for memory in outcome.talk], "statements": [memory.id for memory in outcome.statements]}
    documents[0] |= {key: memory_ids for key, memory_ids in also.items() if memory_ids}
    run.screen.document(documents[0] if len(documents) == 1 else {"memories": documents})
    for memory in outcome.memories:
        run.screen.show(f"Forgot {memory.id}.")
        if older[memory.id]:
            run.screen.show(f"Also forgot its older versions: {', '.join(older[memory.id])}.")
        if source := get_source_id(memory):
            run.screen.hint(
                f"Its source is kept: {source}. `agent-memory ingest --undo` forgets a resource with all "
                "that was extracted from it.",
                style="dim",
            )
    for key, description in (("talk", "the same words in talk"), ("statements", "what an agent made of it")):
        if also[key]:
            run.screen.show(f"Also forgot {description}: {', '.join(also[key])}.")
    return outcome.memories[0].id, until


def _view_until(until: datetime | None) -> dict[str, str]:
    return {} if until is None else {"kept_until": until.isoformat()}


async def _confirm(run: AgentContext, memories: list[Memory], *, now: bool) -> None:
    run.need_terminal("Nothing was forgotten.", "Forgetting")
    for memory in memories:
        older = await run.service.storage.older_versions(memory.id)
        if len(memories) > 1:
            run.screen.note(f"{memory.id}:", style="dim")
        run.screen.note(memory.content, style="")
        if older:
            run.screen.note(f"It replaced {', '.join(older)}; that would also be forgotten.")
    what = memories[0].id if len(memories) == 1 else f"these {len(memories)}"
    if now:
        run.screen.note(NO_RESTORE)
    run.confirm(f"Forget {what}{' for good' if now else ''}?", "Nothing was forgotten.")


async def are_words(run: AgentContext, arguments: list[str]) -> bool:
    """Return True if arguments of `forget` describe memories instead of naming IDs.

    Args:
        run: Context of the command.
        arguments: Arguments of `forget` without options.
    """
    prefixes = ("mem-", VERBATIM.prefix)
    if any(word.startswith(prefixes) or OTHER_ID.fullmatch(word) for word in arguments) or not arguments:
        return False
    if not all(_ID_FORM.fullmatch(word.lower()) for word in arguments):
        return True
    if not all(_HEX_WORD.fullmatch(word.lower()) for word in arguments):
        return False
    try:
        await resolve_ids(run.service, arguments)
    except UnknownIdError:
        return True
    return False


async def forget_matching(
    run: AgentContext, words: str, *, reason: str, yes: bool, now: bool
) -> tuple[str, datetime | None]:
    """List candidates, ask for a choice, forget it.

    Returns:
        The id of a forgotten memory, which `restore` takes, and until when that is possible.

    Raises:
        typer.Exit: Nothing was chosen, or nothing matches.
    """
    candidates = await run.service.searcher.find_candidates(words, run.caller)
    views = view_candidates(candidates)
    document: dict[str, Any] = {"forgotten": False, "count": len(views), "candidates": views}
    document |= {"forget": [], "change": []}
    _show_candidates(run, candidates)
    for place, matches in zip(("archived", "waiting"), await find_stored_apart(run.service, words), strict=True):
        if matches is not None:
            document[place] = _show_kept(run, place, matches)
    run.screen.document(document)
    chosen = _choose(run, candidates, yes=yes, now=now) if candidates.listed else []
    if not chosen:
        run.screen.note("Nothing was forgotten." if candidates.listed else "No memory matches; nothing was forgotten.")
        if not candidates.listed:
            run.screen.hint("Try other words. `agent-memory forget --all` forgets all memories.")
        raise typer.Exit(FAILED)
    outcome = await run.service.writer.deletion.forget([memory.id for memory in chosen], run.caller, reason=reason)
    until = None if now else outcome.kept_until
    forgotten = [{"memory_id": memory.id, "content": memory.content} for memory in outcome.memories]
    document |= {
        "forgotten": True,
        "count": len(forgotten),
        "forget": forgotten,
        "older_versions": list(outcome.older_versions),
    }
    document |= {"statements": [memory.id for memory in outcome.statements]} if outcome.statements else {}
    document["similar"] = [{"memory_id": memory.id, "content": memory.content} for memory in outcome.similar]
    run.screen.document(document | _view_until(until))
    for memory in outcome.memories:
        run.screen.show(f"Forgot {memory.id}: {brief(memory.content)}")
    if outcome.older_versions:
        run.screen.show(f"Also forgot its older versions: {', '.join(outcome.older_versions)}.")
    for item in outcome.talk:
        run.screen.show(f"Also forgot in a conversation {item.id}: {brief(item.content)}")
    for statement in outcome.statements:
        run.screen.show(f"Also forgot {statement.id}, made of it: {brief(statement.content)}")
    for memory in outcome.similar:
        run.screen.note(f'Kept: {memory.id} "{brief(memory.content)}" ({memory.timestamp:%Y-%m-%d})')
    return outcome.memories[0].id, until


def _show_candidates(run: AgentContext, candidates: "ForgetCandidates") -> None:
    """Print a numbered list, next to JSON on stderr."""
    for number, candidate in enumerate(candidates.listed, start=1):
        memory, owner = candidate.memory, candidate.ownership.owner
        parts = [f"{number}. {memory.id}", f"{memory.timestamp:%Y-%m-%d}", *([f"owner: {owner}"] if owner else [])]
        head = ", ".join([*parts, *(["weak match"] if candidate.match == "weak" else [])])
        if run.screen.form == "text":
            run.screen.show(head, style="dim")
            run.screen.show(brief(memory.content), indent=3)
        elif sys.stdin.isatty():
            run.screen.note(f"{head}\n   {brief(memory.content)}", style="")


def _choose(run: AgentContext, candidates: "ForgetCandidates", *, yes: bool, now: bool) -> list[Memory]:
    """Return the chosen memories; with `--yes` the only certain one."""
    if yes:
        only = candidates.get_only_match()
        if only is None:
            run.screen.note(f"Nothing was forgotten: {_describe_doubt(candidates)}. {_RULE}")
            run.screen.hint("Run it again without --yes to choose, or run `agent-memory forget ID`.")
            raise typer.Exit(FAILED)
        return [only]
    if not sys.stdin.isatty():
        run.screen.hint("No terminal to choose on. Run `agent-memory forget ID --yes` to forget one of them.")
        return []
    run.screen.last_words = lambda: "Stopped. Nothing was forgotten."
    while True:
        answer = read_line(
            run.screen, f"Forget which{' for good' if now else ''}? Numbers such as 1 3, Enter for none: "
        )
        numbers = [number for number in _NUMBERS.split(answer or "") if number]
        if all(
            number.isascii() and number.isdigit() and 0 < int(number) <= len(candidates.listed) for number in numbers
        ):
            run.screen.last_words = lambda: "Stopped."
            return [candidates.listed[int(number) - 1].memory for number in dict.fromkeys(numbers)]
        run.screen.note(f"Type numbers from 1 to {len(candidates.listed)}.")


def _describe_doubt(candidates: "ForgetCandidates") -> str:
    """Name the reason that keeps `--yes` from forgetting."""
    strong = [candidate for candidate in candidates.listed if candidate.match == "strong"]
    if len(strong) != 1:
        return f"{len(strong)} candidates match strongly" if strong else "no candidate matches strongly"
    if not candidates.ownership.owner:
        return 'your words name no owner, such as "my" or "Ann\'s"'
    if not candidates.ownership.names(strong[0].ownership):
        owner = strong[0].ownership.owner
        return f"the strong match is about {owner}" if owner else "the strong match names no owner"
    return "the strong match lacks some of your words"


async def forget_all(run: AgentContext, *, reason: str, yes: bool, now: bool) -> tuple[str, datetime | None]:
    """Show how much all memories are, ask, and forget them.

    Returns:
        The id of a forgotten memory, which `restore` takes, and the day until when.

    Raises:
        ValidationError: No terminal is available to ask on.
        typer.Exit: The answer was no, or nothing is remembered.
    """
    preview = await run.service.searcher.preview_all(run.caller)
    view, memories = view_preview(preview), counted(len(preview.memories), "memory", "memories")
    if not preview:
        run.screen.document({"forgotten": False, **view})
        run.screen.note(f"{run.service.agent_id} has no memories.")
        raise typer.Exit(FAILED)
    categories = ", ".join(f"{name} {count}" for name, count in view["by_category"].items())
    run.screen.note(f"{memories}: {categories}.")
    if has_archive(run) or has_journal(run.service.agent_id, run.service.settings, CANDIDATE):
        run.screen.note("Archived memories and waiting notes stay; `agents delete` deletes everything for good.")
    if not yes:
        question = f"Forget all {memories}{' for good' if now else ''}?"
        run.confirm(question, "Nothing was forgotten.", "Forgetting")
    outcome = await run.service.writer.deletion.forget_all(preview, run.caller, reason=reason)
    until = None if now else outcome.kept_until
    run.screen.document({"forgotten": True, **view, **_view_until(until)})
    run.screen.show(f"Forgot {memories}.")
    return preview.memories[0].id, until


def _show_kept(run: AgentContext, place: str, matches: "Sequence[Memory]") -> list[str]:
    """Print matches that are not forgotten; return their IDs."""
    ids = [match.id for match in matches]
    state, hint = "archived", f"`agent-memory forget {' '.join(ids)}` to forget what is archived."
    if place == "waiting":
        options = " ".join(f"--reject {match_id}" for match_id in ids)
        state, hint = "waits in the inbox", f"`agent-memory inbox {options}` to reject what waits."
    for match in matches:
        run.screen.note(f"{match.id}: {state}; not forgotten", style="dim")
        run.screen.note(brief(match.content), style="")
    if ids:
        run.screen.hint(f"Run {hint}")
    return ids
