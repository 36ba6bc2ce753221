"""`agent-memory inbox`: accept or reject waiting notes."""

import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.cli.drafts import edited_text
from agent_memory.cli.options import build_ambiguous, check_beginning
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.styled_text import StyledText
from agent_memory.cli.text import day
from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.files.wording import counted
from agent_memory.language.words import index_terms, query_terms
from agent_memory.models import CANDIDATE
from agent_memory.models.identifiers import IMPORT_PREFIX, TextOrigin
from agent_memory.models.record import view_fields
from agent_memory.models.text import plain
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_memory.memory import Stored
    from agent_memory.memory.inbox import Inbox
    from agent_memory.models import Candidate

_COLUMNS: Final = ("id", "timestamp", "category", "content")
_DONE: Final = {"forget": "forgotten", "store": "stored", "update": "changed"}
_Ids = list[str] | None
_ID: Final = "ID"


@command(rows=True)
async def inbox(
    run: AgentContext,
    *,
    accept: Annotated[
        _Ids, typer.Option("--accept", metavar=_ID, help="Store this note, or a whole import; repeatable.")
    ] = None,
    reject: Annotated[
        _Ids, typer.Option("--reject", metavar=_ID, help="Reject this note, or a whole import; repeatable.")
    ] = None,
    matching: Annotated[
        str, typer.Option("--matching", metavar="WORDS", help="With an import: only notes with these words.")
    ] = "",
    edit: Annotated[str | None, typer.Option("--edit", metavar=_ID, help="Edit this note, then store it.")] = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="With --edit: the new text, without an editor.")
    ] = None,
    list_: Annotated[  # noqa: ARG001 - of earlier versions, which asked in a terminal
        bool, typer.Option("--list", help="Only list, as without options.")
    ] = False,
) -> None:
    """List, accept or reject waiting notes.

    After four weeks a waiting note is archived; in mode ask it is deleted. A rejected note is deleted from the file and
    not offered again. `review` decides with single keys.
    """
    if text is not None and edit is None:
        raise ValidationError("--text needs --edit.", code="usage")
    from agent_memory.memory.inbox_access import opened_inbox

    async with opened_inbox(run.service) as opened:
        if accept or reject or edit:
            batches = await _decide_batches(run, opened, accept or [], reject or [], matching)
            yes, no = ([word for word in words or [] if word not in batches] for words in (accept, reject))
            if edit or yes or no:
                await _decide(run, opened, yes, no, edit, text)
        else:
            await list_candidates(run, opened, await opened.waiting(), "Nothing waits in the inbox.")


async def _decide_batches(
    run: AgentContext, opened: "Inbox", accepted: list[str], rejected: list[str], matching: str
) -> dict[str, int]:
    """Decide about whole imports; return the number of decided notes of each.

    Raises:
        UnknownIdError: Nothing of an import waits.
    """
    waiting, wanted, decided = await opened.waiting(), set(query_terms(matching)), dict[str, int]()
    for word in [word for word in (*accepted, *rejected) if word.startswith(IMPORT_PREFIX)]:
        batch = [candidate for candidate in waiting if candidate.batch == word]
        chosen = [candidate for candidate in batch if wanted <= set(index_terms(candidate.content))]
        if not chosen:
            raise UnknownIdError(
                f"Nothing of {quoted(word)} waits{' with these words' if batch else ''}; nothing was decided.",
                recovery="Run `agent-memory inbox` to list waiting notes.",
            )
        if word in accepted:
            run.begin_import()
            stored = await opened.accept_batch(chosen, run.caller)
            run.screen.show(f"Stored {counted(len(stored), 'memory', 'memories')} of {word}.")
            run.hint_undo(f"--import {run.caller.session_id}")
        else:
            await opened.reject([candidate.id for candidate in chosen], run.caller)
            run.screen.show(f"Rejected {counted(len(chosen), 'note')} of {word}.")
        decided[word] = len(chosen)
    if decided:
        run.screen.document({"batches": decided})
    return decided


async def _decide(
    run: AgentContext, opened: "Inbox", accepted: list[str], rejected: list[str], edited: str | None, text: str | None
) -> None:
    waiting = [*await opened.waiting(), *await opened.archived()]
    if wrong := set(accepted) & {*rejected, *([edited] if edited else [])}:
        message = f"{quoted(min(wrong))} is given two decisions; nothing was decided."
        raise ValidationError(message, code="usage", recovery="Give it one decision.")
    yes, no = [find_candidate(waiting, word) for word in accepted], [find_candidate(waiting, word) for word in rejected]
    chosen = find_candidate(waiting, edited) if edited is not None else None
    done: dict[str, Any] = {"accepted": [], "rejected": []}
    run.screen.document(done)
    if chosen is not None:
        await edit_candidate(run, opened, chosen, text, done)
    for candidate in yes:
        await _accept_candidate(run, opened, candidate, {}, done)
    for candidate in await opened.reject([candidate.id for candidate in no], run.caller):
        done["rejected"].append(candidate.id)
        run.screen.show(f"Rejected {candidate.id}; it is not offered again.")


def find_candidate(waiting: "list[Candidate]", word: str, *, archived: bool = False) -> "Candidate":
    """Return the candidate whose ID begins with `word`.

    Args:
        waiting: Candidates to choose from.
        word: ID, or the beginning of one.
        archived: True if the candidates are archived notes.

    Raises:
        UnknownIdError: No such note.
        ValidationError: There are several, or it is too short.
    """
    check_beginning(word)
    beginning = f"cnd-{word.strip().removeprefix('cnd-')}"
    matches = [candidate for candidate in waiting if candidate.id.startswith(beginning)]
    if not matches or beginning == "cnd-":
        if archived:
            raise UnknownIdError(
                f"{quoted(word)} is not an archived note; nothing was restored.",
                recovery="Run `agent-memory review --archived` to list archived notes.",
            )
        raise UnknownIdError(
            f"{quoted(word)} does not wait in the inbox; nothing was decided.",
            recovery="Run `agent-memory inbox` to list waiting notes.",
        )
    if len(matches) > 1:
        raise build_ambiguous(word, len(matches), f" {', '.join(candidate.id for candidate in matches)}.")
    return matches[0]


async def _accept_candidate(
    run: AgentContext, opened: "Inbox", candidate: "Candidate", changes: dict[str, Any], done: dict[str, Any]
) -> None:
    stored = await opened.accept(candidate.id, run.caller, changes)
    done["accepted"].append({"id": candidate.id, "memory_id": stored.memory.id, "duplicate": stored.duplicate})
    run.screen.show(describe_accepted(candidate, stored))
    if not stored.duplicate:
        run.hint_undo(stored.memory.id)


def describe_accepted(candidate: "Candidate", stored: "Stored") -> str:
    """Return a sentence about a candidate that was accepted."""
    if candidate.act:
        return f"{stored.memory.id} was {_DONE[candidate.act]}."
    return f"{stored.memory.id} {'says that already' if stored.duplicate else f'remembers {candidate.id}'}."


async def edit_candidate(
    run: AgentContext, opened: "Inbox", candidate: "Candidate", text: str | None, done: dict[str, Any]
) -> None:
    """Store a candidate with a new text.

    Args:
        run: Context of this command.
        opened: Inbox of the candidate.
        candidate: Waiting candidate to store.
        text: New text; None opens an editor.
        done: Lists of decisions, to which this one is added.

    Raises:
        ValidationError: The new text is empty, or the candidate is a proposal.
    """
    if candidate.act:
        raise ValidationError(
            f"{candidate.id} is a proposal, which has no text to edit; nothing was decided.",
            code="usage",
            recovery=f"Run `agent-memory accept {candidate.id}`, or `agent-memory inbox --reject {candidate.id}`.",
        )
    new = (await edited_text(run, candidate.id, candidate.content) if text is None else text).strip()
    if not new:
        recovery = f"Run `agent-memory inbox --reject {candidate.id}` to remove it."
        raise ValidationError("The text is empty; nothing was decided.", recovery=recovery)
    typed = (
        {"origin": "typed"} if sys.stdin.isatty() else {"trust": "medium"}
    )  # what a program gives need not be a person's words
    await _accept_candidate(
        run, opened, candidate, {"content": new, **(typed if new != candidate.content else {})}, done
    )


def view_candidate(opened: "Inbox", candidate: "Candidate") -> dict[str, Any]:
    """Return a candidate as JSON values."""
    return {
        **view_fields(candidate, "id", "content", "category", "project", "tags", "trust"),
        "source": candidate.source.kind,
        **view_fields(candidate, "via", "replaces", "act", "act_ids", "act_values", "is_note", "batch", "timestamp"),
        "until": opened.ends_at(candidate),
    }


async def list_candidates(run: AgentContext, opened: "Inbox", waiting: "Sequence[Candidate]", nothing: str) -> None:
    """Print candidates, or a note where there are none."""
    rows = [view_candidate(opened, candidate) for candidate in waiting]
    run.screen.rows({"agent_id": run.service.agent_id, "waiting": rows}, "waiting", _COLUMNS)
    for candidate in waiting:
        show_candidate(run, candidate)
    if not waiting:
        run.screen.note(nothing)
    else:
        run.screen.hint("Run `agent-memory review` to decide, or `agent-memory inbox --accept ID` or --reject ID.")


def _describe_value(value: object) -> str:
    """Return a value as plain words, lists with commas."""
    entries = list(value.values()) if isinstance(value, dict) else value
    if isinstance(entries, list):
        return (" " if isinstance(value, dict) else ", ").join(filter(None, map(_describe_value, entries)))
    return str(value)


def show_candidate(run: AgentContext, candidate: "Candidate") -> None:
    """Print one candidate: who said it when, and its text."""
    whose = (
        "of the agent"
        if candidate.act
        else {"user": "you said", "assistant": "the agent said", "tool": "a tool returned"}.get(
            candidate.source.kind, ""
        )
    )
    is_tainted = candidate.trust == "low" and not candidate.batch
    doubt = (TextOrigin.parse(candidate.origin).doubt or TextOrigin("agent after").doubt) if is_tainted else ""
    head = [
        day(candidate.timestamp),
        "proposal" if candidate.act else candidate.category,
        *([candidate.project] if candidate.project else []),
        candidate.batch,
        whose,
        doubt,
    ]
    run.screen.show(StyledText.assemble((candidate.id, "bold"), (f"  {plain(', '.join(filter(None, head)))}", "dim")))
    run.screen.show(candidate.content, indent=2)
    if candidate.act:
        what = "store this text" if candidate.act == "store" else f"{candidate.act} {', '.join(candidate.act_ids)}"
        values = sorted(candidate.act_values.items())
        fields = [f"{name} {_describe_value(value)}" for name, value in values if name != "content"]
        run.screen.show(f"would {what}{': ' * bool(fields)}{', '.join(map(plain, fields))}", indent=2, style="dim")
    if candidate.replaces:
        run.screen.show(f"would replace {candidate.replaces}", indent=2, style="dim")


async def write_waiting(run: AgentContext, write: "Callable[[dict[str, Any]], object]") -> int:
    """Write what waits, as a part of an export; return how much."""
    from agent_memory.memory.inbox_access import has_journal, opened_inbox

    if not has_journal(run.service.agent_id, run.service.settings, CANDIDATE):
        return 0
    async with opened_inbox(run.service) as opened:
        candidates = [*await opened.waiting(), *await opened.archived()]
    for candidate in candidates:
        write({"kind": CANDIDATE.name, "id": candidate.id, **candidate.to_record()})
    return len(candidates)


async def import_waiting(run: AgentContext, candidates: "Sequence[Candidate]", *, trusted: bool, dry_run: bool) -> None:
    """Store the waiting notes of a trusted export, and report them."""
    if not candidates:
        return
    if not trusted:
        run.screen.note(f"Skipped {counted(len(candidates), 'candidate')} of an inbox: only with --trusted.")
        return
    from agent_memory.memory.inbox_access import opened_inbox

    async with opened_inbox(run.service) as opened:
        count = await opened.take_in(candidates, dry_run=dry_run)
    run.screen.note(f"{counted(count, 'candidate')} for the inbox.", style="dim")
