"""`forget WORDS` and `forget --all`."""

import re
import sys
from typing import TYPE_CHECKING, Any, Final

import typer

from agent_memory.cli.archive import has_archive, open_archive
from agent_memory.cli.options import OTHER_ID, resolve_ids
from agent_memory.cli.runtime import FAILED, AgentContext
from agent_memory.cli.screen import read_line
from agent_memory.cli.text import brief
from agent_memory.errors import UnknownIdError
from agent_memory.files.wording import counted
from agent_memory.memory.inbox_access import inbox_exists, opened_inbox
from agent_memory.memory.views import view_candidates, view_preview

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.memory import ForgetCandidates
    from agent_memory.models import Memory

_HEX_WORD: Final = re.compile(r"[a-f]{4,12}")
"""A word such as "facade", which may be the beginning of an ID."""
_ID_FORM: Final = re.compile(r"mem-.*|[0-9a-f]{4,12}")
_NUMBERS: Final = re.compile(r"[\s,]+")
_RULE: Final = "--yes needs exactly one strong match that has all your words and the owner you name."


async def are_words(run: AgentContext, arguments: list[str]) -> bool:
    """Return True if arguments of `forget` describe memories instead of naming IDs.

    Args:
        run: Context of the command.
        arguments: Arguments of `forget` without options.
    """
    if any(word.startswith("mem-") or OTHER_ID.fullmatch(word) for word in arguments) or not arguments:
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
) -> "tuple[str, datetime | None]":
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
    document |= await _find_archived(run, words) | await _waiting(run, words)
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
    run.screen.document(document | ({} if until is None else {"kept_until": until.isoformat()}))
    for memory in outcome.memories:
        run.screen.show(f"Forgot {memory.id}: {brief(memory.content)}")
    if outcome.older_versions:
        run.screen.show(f"Also forgot its older versions: {', '.join(outcome.older_versions)}.")
    for item in outcome.talk:
        run.screen.show(f"Also forgot in talk {item.id}: {brief(item.content)}")
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


def _choose(run: AgentContext, candidates: "ForgetCandidates", *, yes: bool, now: bool) -> "list[Memory]":
    """Return the chosen memories; with `--yes` the only certain one."""
    if yes:
        only = candidates.get_only_match()
        if only is None:
            run.screen.note(f"Nothing was forgotten: {_describe_doubt(candidates)}. {_RULE}")
            run.screen.hint("Run it again without --yes to choose, or run `agent-memory forget ID`.")
            raise typer.Exit(FAILED)
        return [only]
    if not sys.stdin.isatty():
        run.screen.hint("No terminal to choose on. `agent-memory forget ID --yes` forgets one of them.")
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


async def forget_all(run: AgentContext, *, reason: str, yes: bool, now: bool) -> "tuple[str, datetime | None]":
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
    if has_archive(run) or inbox_exists(run.service.agent_id, run.service.settings):
        run.screen.note("What is archived or waits in the inbox stays; `agents delete` deletes everything for good.")
    if not yes:
        run.need_terminal("Nothing was forgotten.", "Forgetting")
        run.confirm(f"Forget all {memories}{' for good' if now else ''}?", "Nothing was forgotten.")
    outcome = await run.service.writer.deletion.forget_all(preview, run.caller, reason=reason)
    until = None if now else outcome.kept_until
    run.screen.document({"forgotten": True, **view, **({} if until is None else {"kept_until": until.isoformat()})})
    run.screen.show(f"Forgot {memories}.")
    return preview.memories[0].id, until


async def _find_archived(run: AgentContext, words: str) -> dict[str, list[str]]:
    """List matching archived memories, which stay."""
    if not has_archive(run):
        return {}
    async with open_archive(run) as archive:
        matches = await archive.find_matches(words)
    for memory in matches:
        run.screen.note(f"{memory.id}: archived; not forgotten", style="dim")
        run.screen.note(brief(memory.content), style="")
    if matches:
        run.screen.hint(
            f"Run `agent-memory forget {' '.join(match.id for match in matches)}` to forget what is archived."
        )
    return {"archived": [match.id for match in matches]}


async def _waiting(run: AgentContext, words: str) -> dict[str, list[str]]:
    """List matching inbox candidates, which stay."""
    if not inbox_exists(run.service.agent_id, run.service.settings):
        return {}
    async with opened_inbox(run.service) as inbox:
        matches = await inbox.find_matches(words)
    for candidate in matches:
        run.screen.note(f"{candidate.id}: waits in the inbox; not forgotten", style="dim")
        run.screen.note(brief(candidate.content), style="")
    if matches:
        options = " ".join(f"--reject {match.id}" for match in matches)
        run.screen.hint(f"Run `agent-memory inbox {options}` to reject what waits.")
    return {"waiting": [match.id for match in matches]}
