"""`agent-memory ingest` and `knowledge resources`: documents and conversations."""

import asyncio
import re
import shlex
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.cli.exit_codes import FAILED
from agent_memory.cli.options import Yes
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.text import minute
from agent_memory.cli.transfer_tally import note_short_talk
from agent_memory.encryption import is_encrypted
from agent_memory.errors import AgentMemoryError, UnknownIdError, ValidationError
from agent_memory.files.layout import resolve_root
from agent_memory.files.wording import counted
from agent_memory.knowledge.intake.document_index import COPY_OF, MAYBE_VERSION_OF, MISSING_SINCE
from agent_memory.knowledge.intake.drafts import PURGED
from agent_memory.knowledge.intake.file_formats import list_files
from agent_memory.knowledge.intake.ingest import FileIngested, Ingest
from agent_memory.knowledge.intake.withdrawal import find_forgotten, find_ingested, restore_items, undo
from agent_memory.knowledge.pages.assignment import count_unfiled
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.passages.forgotten_texts import ForgottenTexts
from agent_memory.knowledge.passages.items import is_passage
from agent_memory.knowledge.passages.replaced_items import (
    PROPOSED,
    hide_missing,
    list_below,
    note_missing,
)
from agent_memory.knowledge.pipeline.background_work import runner_of
from agent_memory.knowledge.records import Knowledge
from agent_memory.knowledge.tool_settings import check_group
from agent_memory.models import Resource, visible
from agent_memory.models.record import view_fields
from agent_memory.models.text import one_line
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_ID: Final = re.compile(r"res-[0-9a-f]{12}")
_COLUMNS: Final = ("id", "resource_type", "timestamp", "chars", "title")
_SHOWN: Final = 20
_NAMED: Final = 5

_WHY: Final = {
    "damaged_part": "is damaged",
    "invalid": "is empty, or no text",
    "only_secret": "is nothing but a secret, which is never stored",
    "too_long": "is longer than 1,000,000 characters, so it has to be split",
}
"""Reasons for not ingesting a text, by error code."""


@command(may_be_new=True)
async def ingest(  # noqa: PLR0913 - the options of a command
    run: AgentContext,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="Markdown, text, chats as .jsonl, conversations.json of ChatGPT or Claude, or a folder of these. "
            "With --undo also res- ids.",
            show_default=False,
        ),
    ] = None,
    *,
    group: Annotated[
        str,
        typer.Option("--group", help="Group of the documents (tenant:session).", metavar="GROUP"),
    ] = "",
    undo_: Annotated[bool, typer.Option("--undo", help="Withdraw what was ingested from these files.")] = False,
    retry: Annotated[
        list[str] | None,
        typer.Option("--retry", help="Retry a failed or quarantined record; `status` lists them.", metavar="ID"),
    ] = None,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Withdraw documents of a folder whose files are missing; undo restores them."),
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Also store words again that were purged.")] = False,
    yes: Yes = False,
) -> None:
    """Ingest documents and conversations, each once.

    An interrupted command continues where it stopped.

    New content of a known file is a new version. Passages that it no longer has are hidden; undo restores them.
    """
    if group:
        check_group(group)
    if not files and not retry:
        raise ValidationError("No file is named.", code="no_file", recovery="Name a file, or an ID with --retry.")
    files = files or []
    if not all(file.strip() for file in files):
        message = f"FILE is empty; nothing was {'changed' if undo_ else 'ingested'}."
        raise ValidationError(message, code="no_file", recovery="Name a file or folder.")
    async with open_knowledge(run) as knowledge:
        if retry:
            await _retry(run, knowledge, retry)
        if files and undo_:
            await _undo(run, knowledge, files, yes=yes)
        elif files:
            await _ingest(run, knowledge, files, group, prune=prune, again=again)


@command(rows=True)
async def resources(
    run: AgentContext,
    resource_id: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="Show this one in full: its ID, the first characters of it, or its title.",
            show_default=False,
        ),
    ] = None,
    *,
    shows_all: Annotated[bool, typer.Option("--all", help=f"List all, not only the newest {_SHOWN}.")] = False,
) -> None:
    """List documents and conversations, the newest first; or show one."""
    async with open_knowledge(run) as knowledge:
        if resource_id is not None:
            await _show(run, knowledge, resource_id)
            return
        total = len(await knowledge.resources.valid())
        shown = await knowledge.resources.list_recent(total if shows_all else _SHOWN) if total else []
        head = {"agent_id": run.service.agent_id, "count": len(shown), "total": total}
        run.screen.rows({**head, "resources": [_to_document(resource) for resource in shown]}, "resources", _COLUMNS)
        for resource in shown:
            has_text = resource.chars or resource.resource_type != "conversation"
            size = f" · {resource.chars:,} characters" if has_text else ""
            size += f" · group {resource.group}" if resource.group else ""
            size += "".join(f" · {words}" for words in _describe_file(resource))
            run.screen.show(
                visible(f"{resource.id} · {resource.resource_type} · {minute(resource.timestamp)}{size}"), style="dim"
            )
            run.screen.show(resource.title or resource.content, indent=2, max_lines=1)
        if not total:
            run.screen.hint(
                f"{run.service.agent_id} has no documents or conversations yet. Run `agent-memory ingest FILE`."
            )
        elif total > len(shown):
            run.screen.note(f"{len(shown):,} of {total:,}; --all shows more.", style="dim")


def open_knowledge(run: AgentContext) -> Knowledge:
    """Return documents and conversations of the agent, open for a block."""
    return Knowledge(run.service.agent_id, run.service.settings)


async def get_resource(knowledge: Knowledge, word: str) -> Resource:
    """Return the resource with an ID, its beginning, or a title.

    Raises:
        UnknownIdError: No such record, or several.
        StorageError: They cannot be read.
    """
    resource = await knowledge.resources.get(word) if _ID.fullmatch(word) else None
    if resource is not None:
        return resource
    start = word if word.startswith("res-") else f"res-{word}"
    resources = await knowledge.resources.valid()
    matches = [match for match in resources if match.id.startswith(start)] or [
        match for match in resources if match.title == word
    ]
    if len(matches) == 1:
        return matches[0]
    names = ", ".join(match.id for match in matches[:_NAMED]) + (" …" if len(matches) > _NAMED else "")
    raise UnknownIdError(
        f"{len(matches)} resources are called {quoted(word)}: {names}." if matches else f"No resource {quoted(word)}.",
        code="ambiguous_id" if matches else "unknown_id",
        recovery="Run `agent-memory knowledge resources` to list all.",
    )


async def _ingest(
    run: AgentContext, knowledge: Knowledge, words: list[str], group: str, *, prune: bool, again: bool
) -> None:
    files, folders, links, memories = await _expand_all(run, knowledge, words)
    taking, documents, failed = Ingest(knowledge, run.service.report), list[dict[str, Any]](), 0
    unknown = dict[str, AgentMemoryError]()
    for place, file in enumerate(files):
        _say_when_stopped(run, Path(file).name, len(files) - place - 1)
        try:
            path = _existing(file)
            with _progress(run, path.name) as progress:
                done = await taking.file(path, group=group, caller=run.caller, progress=progress, keeps_purged=again)
        except AgentMemoryError as error:
            failed += 1
            documents.append({"file": file, "error": error.as_dict()})
            if error.code == "unknown_form":
                unknown[file] = error
            else:
                run.screen.note(f"{error.message} {error.recovery}")
            continue
        failed += any(code != PURGED for _, code in done.refused)
        documents.append(_build_row(file, done))
        _say(run, done)
        note_short_talk(run.screen, path, done)
    run.screen.last_words = lambda: "Stopped. All files were read; the same command or the next session does the rest."
    _note_unknown(run, unknown)
    _note_left_out(run, links, memories)
    missing = await _note_missing(run, knowledge, folders, prune=prune)
    if not files and not missing.get("missing"):
        failed += 1
        _note_nothing(run, words)
    ids = [resource_id for row in documents for resource_id in row.get("resources", ())]
    async with restore_items(knowledge, run.service, ids, run.caller):
        worked = await process_due_texts(run, knowledge, is_shown=False)
    await _show_passages(run, knowledge, documents, worked["items"])
    if worked["pages"] and any("error" not in document for document in documents):
        _show_counts(run, knowledge, worked)
    await _note_forgotten(run, knowledge, ids)
    left_out = {"links": links, "memories": memories}
    run.screen.document({"agent_id": run.service.agent_id, "files": documents, **left_out, **missing, **worked})
    if failed:
        raise typer.Exit(FAILED)


def _note_nothing(run: AgentContext, words: list[str]) -> None:
    """Print that there was no file to ingest."""
    named = ", ".join(map(quoted, words))
    run.screen.note(f"Nothing was ingested: no Markdown, text or chat file in {named}.")
    run.screen.hint("Run `agent-memory ingest -h` to see the kinds of files.")


def _note_unknown(run: AgentContext, errors: dict[str, AgentMemoryError]) -> None:
    """Print files of no known form, and the known forms."""
    if errors:
        error = next(iter(errors.values()))
        names = ", ".join(one_line(Path(file).name) for file in errors)
        count = f"{len(errors):,} files are of no known form and were not ingested: {names}."
        run.screen.note(f"{error.message if len(errors) == 1 else count} {error.recovery}")


def _note_left_out(run: AgentContext, links: list[str], memories: list[str]) -> None:
    """Print which links and memories of the folders were not ingested."""
    if memories:
        verbs = ("holds", "was") if len(memories) == 1 else ("hold", "were")
        count = f"{counted(len(memories), 'folder')} {verbs[0]} memories of agents and {verbs[1]} left out"
        run.screen.note(f"{count}: {_join_names(memories)}.")
    if links:
        verb, outcome = ("leads", "It was") if len(links) == 1 else ("lead", "They were")
        names = _join_names(Path(link).name for link in links)
        count = counted(len(links), "link")
        run.screen.note(f"{count} {verb} out of the folder or to hidden files: {names}. {outcome} left out.")
        run.screen.hint("To ingest one, name it: `agent-memory ingest FILE`.")


async def _note_missing(run: AgentContext, knowledge: Knowledge, folders: list[Path], *, prune: bool) -> dict[str, Any]:
    """List documents whose files are missing; withdraw them if `prune`."""
    records = {record.id: record for folder in folders for record in await note_missing(knowledge, folder)}
    if not records:
        return {"missing": []} if folders else {}
    missing = [{"id": record.id, "file": record.source.detail, **_get_since(record)} for record in records.values()]
    names = _join_names(record.source.detail for record in records.values())
    if not prune:
        verb = "is" if len(records) == 1 else "are"
        run.screen.note(f"{counted(len(records), 'file')} {verb} missing: {names}.")
        command_line = f"agent-memory ingest {shlex.join(map(str, folders))} --prune"
        target = "it" if len(records) == 1 else "them"
        run.screen.hint(run.screen.complete(f"Run `{command_line}` to withdraw {target}."))
        return {"missing": missing}
    hidden = await hide_missing(knowledge, run.service, list(records.values()), run.caller)
    run.screen.show(f"Withdrew {names} with {counted(len(hidden), 'item')}. Run {run.build_undo('')} to take it back.")
    return {"missing": missing, "withdrawn": hidden}


def _join_names(names: "Iterable[str]") -> str:
    """Return the first few names of files as one line."""
    shown = [one_line(name) for name in names]
    return ", ".join(shown[:_NAMED]) + (" …" if len(shown) > _NAMED else "")


def _get_since(record: Resource) -> dict[str, Any]:
    return {"missing_since": record.metadata.get(MISSING_SINCE)}


async def _show_passages(run: AgentContext, knowledge: Knowledge, documents: list[dict[str, Any]], drawn: int) -> None:
    """Print how many passages the files have, and which older ones stayed."""
    ids = [resource_id for document in documents for resource_id in document.get("resources", ())]
    records = await knowledge.resources.valid_among(ids)
    texts = [record for record in records.values() if record.resource_type != "conversation"]
    items = {item.id: item for record in texts for item in await run.service.storage.linked_to(record.id)}
    shown = await run.service.storage.valid_among([item.id for item in items.values() if is_passage(item)])
    count = len(shown) if len(texts) == len(records) else max(drawn, len(shown))
    if count:
        name = f"the {Path(texts[0].title).stem}" if len(records) == len(texts) == 1 else "what was ingested"
        run.screen.show(f'{counted(count, "passage")}. Ask "digest {one_line(name)}" for statements and pages.')
    older = [record.supersedes for record in texts if record.supersedes]
    passages = [item for resource_id in older for item in await run.service.storage.linked_to(resource_id)]
    touched = [item.id for item in passages if PROPOSED in item.metadata]
    if touched:
        verb = "is" if len(touched) == 1 else "are"
        run.screen.hint(
            f"{counted(len(touched), 'passage')} that you pinned or edited {verb} no longer in the file: "
            f"{', '.join(touched[:_NAMED])}. To remove one: `agent-memory forget ID`"
        )


async def _retry(run: AgentContext, knowledge: Knowledge, ids: list[str]) -> None:
    """Work on failed records again."""
    runner = runner_of(knowledge, run.service, run.caller, at_once=True)
    failed = await _failures(knowledge)
    unknown = [record_id for record_id in ids if record_id not in failed]
    if unknown:
        raise UnknownIdError(
            f"No record {quoted(unknown[0])} failed; nothing was tried.",
            recovery="Run `agent-memory status` to list failed records.",
        )
    ran = await runner.run(retry=ids)
    failures = await _failures(knowledge)
    failed_ids = [record_id for record_id in ids if record_id in failures]
    run.screen.document({"retried": ids, "failed": failed_ids, "is_busy": ran.is_busy})
    if ran.is_busy:
        run.screen.note("Another process is doing the background work; try again when it has ended.")
    for record_id in ids:
        outcome = f"failed again ({failures[record_id]})" if record_id in failed_ids else "was worked on"
        run.screen.show(f"{record_id} {outcome}.")
    if failed_ids:
        raise typer.Exit(FAILED)


async def _failures(knowledge: Knowledge) -> dict[str, str]:
    """Return failure codes by record ID."""
    return {failure.id: failure.code for mark in await knowledge.marks.valid() for failure in mark.failures}


async def process_due_texts(run: AgentContext, knowledge: Knowledge, *, is_shown: bool = True) -> dict[str, Any]:
    """Process due texts and return the counts.

    Args:
        run: Context of the command.
        knowledge: Records of the agent.
        is_shown: True to print the numbers of items and pages.
    """
    runner, before = runner_of(knowledge, run.service, run.caller, at_once=True), await run.service.storage.count()
    due = sum(stage.due for stage in await runner.backlog())
    if not due:
        await runner.run()  # new items of pages that wait for more
        return {"items": 0, "due": 0, **await _count_all(run, knowledge, is_shown=is_shown)}
    with run.screen.show_steps("Extracting items, writing pages", due) as show:
        ran = await runner.run(progress=lambda so_far: show(sum(so_far.done.values())))
    if ran.is_busy:
        run.screen.note("Another process is extracting the items; nothing is left to do here.")
    backlog = await runner.backlog()
    drawn, remaining = await run.service.storage.count() - before, sum(stage.due for stage in backlog)
    if is_shown:
        run.screen.show(f"Extracted {counted(drawn, 'item')}.")
    if ran.failed:
        lost = counted(max(stage.failed for stage in backlog), "text")
        run.screen.hint(f"{lost} could not be processed; `agent-memory status` says why.")
    return {"items": drawn, "due": remaining, **await _count_all(run, knowledge, is_shown=is_shown)}


async def _count_all(run: AgentContext, knowledge: Knowledge, *, is_shown: bool) -> dict[str, Any]:
    """Return counts of items and pages; print them if `is_shown`."""
    topics = await Pages(knowledge, run.service).list_shown()
    items, unfiled = (await run.service.storage.tally()).items, await count_unfiled(run.service, topics)
    pages = sum(topic.consolidated_at is not None for topic in topics)
    counts = {"all_items": items, "unfiled": unfiled, "pages": pages}
    if items and is_shown:
        _show_counts(run, knowledge, counts)
    return counts


def _show_counts(run: AgentContext, knowledge: Knowledge, counts: dict[str, Any]) -> None:
    """Print how many items and pages there are."""
    pages = counts["pages"]
    where = f" in {knowledge.folder.topics}" if pages and not is_encrypted(knowledge.folder.path) else ""
    items = f"In all: {counted(counts['all_items'], 'item')}, {counts['unfiled']:,} on no page"
    run.screen.show(f"{items}; {counted(pages, 'page')}{where}.")


async def _note_forgotten(run: AgentContext, knowledge: Knowledge, resources: list[str]) -> None:
    """Print how many items of some resources stay forgotten."""
    items = await find_forgotten(knowledge, run.service, resources)
    if items:
        verbs = ("was", "stays") if len(items) == 1 else ("were", "stay")
        what = f"{counted(len(items), 'item')} {verbs[0]} forgotten before and {verbs[1]} forgotten"
        run.screen.hint(run.screen.complete(f"{what}; `agent-memory restore {items[0].id}` brings one back."))


async def _expand_all(
    run: AgentContext, knowledge: Knowledge, words: list[str]
) -> tuple[list[str], list[Path], list[str], list[str]]:
    """Expand a command line; removed folders of documents are folders."""
    root = resolve_root(run.service.settings.storage_root)
    files, folders, links, memories = await asyncio.to_thread(_expand, words, root)
    missing_paths = await asyncio.to_thread(_list_missing, files)
    removed = {file: path for file, path in missing_paths.items() if await list_below(knowledge, path)}
    return [file for file in files if file not in removed], [*folders, *removed.values()], links, memories


def _expand(words: list[str], root: Path) -> tuple[list[str], list[Path], list[str], list[str]]:
    """Return files, folders, left-out links and memories of arguments."""
    files, folders, links, memories = list[str](), list[Path](), list[str](), list[str]()
    for word in words:
        path = Path(word)
        if path.is_dir():
            folders.append(path.resolve())
            inside, outside, agent_files = list_files(path, root)
            files += map(str, inside)
            links += map(str, outside)
            memories += map(str, agent_files)
        else:
            files.append(word)
    return files, folders, links, memories


def _list_missing(files: list[str]) -> dict[str, Path]:
    """Return the resolved paths of files or folders that do not exist."""
    return {file: path.resolve() for file in files if not (path := Path(file)).exists()}


def _get_real_path(word: str) -> str:
    """Return the resolved path of a file; empty for a mere name."""
    path = Path(word)
    return str(path.resolve()) if path.exists() or path.name != word else ""


def _existing(file: str) -> Path:
    path = Path(file)
    if not path.exists():
        raise ValidationError(f"No file {file}.", code="no_file", recovery="Check the name.")
    return path


def _say_when_stopped(run: AgentContext, name: str, remaining: int) -> None:
    rest = f" {counted(remaining, 'file')} not begun." if remaining else ""
    what = f"Stopped in {name}.{rest} What was ingested is kept; the same command continues from there."
    run.screen.last_words = lambda: what


@contextmanager
def _progress(run: AgentContext, name: str) -> "Iterator[Callable[[FileIngested], object]]":
    """Yield a callback that shows progress on a terminal."""
    with run.screen.progress() as bar:
        task = bar.add_task(f"Ingesting {name}", total=None)
        yield lambda done: bar.update(task, completed=done.new + done.known)


def _build_row(file: str, done: FileIngested) -> dict[str, Any]:
    refused = [{"what": what, "code": code} for what, code in done.refused]
    return {
        "file": file,
        "resources": done.resources,
        "new": done.new,
        "known": done.known,
        "characters": done.characters,
        "redacted": list(done.redacted),
        "refused": refused,
        "mistaken": done.mistaken,
        "replaced": done.replaced or None,
        "copy_of": done.copy_of or None,
        "maybe_version_of": done.maybe_version_of or None,
    }


def _say(run: AgentContext, done: FileIngested) -> None:
    known_count = f", {done.known:,} there already" if done.known else ""
    version = f" A new version of {done.replaced}." if done.replaced else ""
    version += f" A copy of {done.copy_of}." if done.copy_of else ""
    counts = f"{done.new:,} ingested ({done.characters:,} characters){known_count}"
    run.screen.show(f"{one_line(done.name)}: {counts}.{version}")
    if done.maybe_version_of:
        run.screen.hint(
            f"It may be a version of {done.maybe_version_of}, which has the same id or name. Both are kept. Run "
            "`agent-memory knowledge resources ID` to compare them, and `agent-memory ingest --undo ID` to remove one."
        )
    if done.mistaken:
        run.screen.hint(
            f"An earlier version stored turns of {', '.join(done.mistaken)} as the user's that are not. Run "
            f"`agent-memory ingest --undo {' '.join(done.mistaken)}`, then ingest the file again."
        )
    if secrets := [kind for kind in done.redacted if kind != PURGED]:
        run.screen.note(f"Secrets were removed ({', '.join(secrets)}); secrets are never stored.")
    refused = [pair for pair in done.refused if pair[1] != PURGED]
    if len(secrets) < len(done.redacted) or len(refused) < len(done.refused):
        command_line = "`agent-memory ingest FILE --again` stores them again"
        run.screen.hint(f"Purged words of {one_line(done.name)} are left out; {command_line}.")
    if refused:
        reasons = "; ".join(f"{what} {_WHY.get(code, f'({code})')}" for what, code in refused[:5])
        more = f" and {len(refused) - 5:,} more" if len(refused) > 5 else ""  # noqa: PLR2004 - as shown
        rest = " The rest of the file was." if done.new or done.known else ""
        run.screen.note(f"Not ingested: {reasons}{more}.{rest} Correct that, then ingest the file again.")


async def _undo(run: AgentContext, knowledge: Knowledge, words: list[str], *, yes: bool) -> None:
    taken: dict[str, Resource] = {}
    for word in words:
        taken |= {record.id: record for record in await _find_taken(knowledge, word)}
    if not yes:
        run.need_terminal("Nothing was changed.")
        whose = ("its", "it") if len(taken) == 1 else ("their", "them")
        for resource in taken.values():
            run.screen.note(f"{resource.id} {resource.title or resource.content}", style="")
        run.confirm(
            f"Forget {counted(len(taken), 'resource')}, with {whose[0]} turns and what was extracted from {whose[1]}?",
            "Nothing was changed.",
        )
    done = await undo(knowledge, run.service, taken, run.caller)
    run.screen.document({"forgotten": list(taken), "turns": done.episodes, "items": done.items, "pinned": done.pinned})
    stayed = f" {counted(done.pinned, 'pinned item')} stayed." if done.pinned else ""
    run.screen.show(
        f"Forgot {counted(done.resources, 'resource')}, {counted(done.episodes, 'turn')} and "
        f"{counted(done.items, 'item')}.{stayed} "
        + run.screen.complete("`agent-memory archive compact --now` removes the text for good.")
    )


async def _find_taken(knowledge: Knowledge, word: str) -> list[Resource]:
    """Return resources of an ID or file, or documents below a folder.

    Raises:
        UnknownIdError: There are none.
    """
    path = Path(word)
    real_path, folder = await asyncio.to_thread(lambda: (_get_real_path(word), path.resolve()))
    if _ID.fullmatch(word):
        resource = await knowledge.resources.get(word)
        records = [resource] if resource is not None else []
    else:
        records = await find_ingested(knowledge, path.name, real_path)
    records = records or await list_below(knowledge, folder, is_current=False)
    if not records and await asyncio.to_thread(path.is_dir):
        raise UnknownIdError(
            f"No document was ingested from files below {word}; nothing was changed.",
            recovery="Name a chat by its file or ID: `agent-memory knowledge resources` lists all.",
        )
    if not records:
        raise UnknownIdError(
            f"Nothing from {word} was ingested; nothing was changed.",
            recovery="Run `agent-memory knowledge resources` to list what was ingested.",
        )
    return records


async def _show(run: AgentContext, knowledge: Knowledge, resource_id: str) -> None:
    resource = await get_resource(knowledge, resource_id)
    forgotten = ForgottenTexts(knowledge, run.service)
    text = await forgotten.remove_forgotten(await knowledge.text_of(resource))
    if await forgotten.is_source(resource.id):
        text = await forgotten.read_document(resource, text)
    turns = await forgotten.filter_turns(await knowledge.episodes.linked_to(resource.id))
    turns = sorted(turns, key=lambda turn: turn.order)
    lines = [{"id": turn.id, "speaker": turn.speaker or turn.role, "content": turn.content} for turn in turns]
    run.screen.rows({"resources": [{**_to_document(resource), "content": text, "turns": lines}]}, "resources", _COLUMNS)
    run.screen.show(f"{resource.id} · {resource.resource_type} · {minute(resource.timestamp)}", style="dim")
    if resource.title and resource.title != text:
        run.screen.show(resource.title)
    run.screen.show(text)
    for turn in turns:
        run.screen.show(f"{turn.speaker or turn.role}: {turn.content}", indent=2)


def _describe_file(resource: Resource) -> list[str]:
    """Return notes about the file of a resource."""
    copy_of, since = resource.metadata.get(COPY_OF), resource.metadata.get(MISSING_SINCE)
    words = [f"version after {resource.supersedes}" if resource.supersedes else ""]
    maybe = resource.metadata.get(MAYBE_VERSION_OF)
    words += [f"copy of {copy_of}" if copy_of else "", f"maybe a version of {maybe}" if maybe else ""]
    words += [f"file missing since {str(since)[:10]}" if since else ""]
    return [word for word in words if word]


def _to_document(resource: Resource) -> dict[str, Any]:
    return {
        **view_fields(resource, "id", "resource_type", "title", "timestamp", "chars"),
        "file": resource.source.detail,
        **view_fields(resource, "trust", "group", "tags", "metadata"),
    }
