"""`forget --matching WORDS` and `forget --all`: preview, then one change."""

from typing import TYPE_CHECKING, Any

import typer

from agent_memory.cli.archive import has_archive, opened_archive
from agent_memory.cli.running import FAILED, Run
from agent_memory.files.wording import counted
from agent_memory.privacy.inbox import inbox_exists, opened_inbox
from agent_memory.service.views import preview as preview_view
from agent_memory.service.views import preview_all as preview_all_view

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.service import Preview


async def forget_matching(run: Run, words: str, *, reason: str, yes: bool, now: bool) -> "tuple[str, datetime | None]":
    """Show what words mean, ask, and forget it.

    Returns:
        The id of one that went, which `restore` takes, and until when that is possible.

    Raises:
        ValidationError: No terminal is available to ask on.
        typer.Exit: The answer was no, or nothing is meant by the words.
    """
    preview = await run.service.requests.preview(words, run.caller)
    archived: dict[str, list[str]] = await _archived(run, words) | await _waiting(run, words)
    if not preview:
        run.screen.document({"forgotten": False, **preview_view(preview, whole=True), **archived})
        run.screen.note("No memory is meant by that; nothing was forgotten. `search` may find what you mean.")
        raise typer.Exit(FAILED)
    await _show(run, preview)
    if not yes:
        run.need_terminal("Nothing was forgotten.", "Forgetting")
        run.confirm(f"Forget {_what(preview)}{' for good' if now else ''}?", "Nothing was forgotten.")
    outcome = await run.service.requests.forget(preview, run.caller, reason=reason)
    until = None if now else outcome.kept_until
    document: dict[str, Any] = {"forgotten": True, **preview_view(preview, whole=True)}
    document.pop("confirm", None)
    run.screen.document(document | archived | ({} if until is None else {"kept_until": until.isoformat()}))
    run.screen.show(f"Forgot {_what(preview)}.")
    some = preview.gone[0] if preview.gone else preview.cut[0].memory
    return some.id, until


async def forget_all(run: Run, *, reason: str, yes: bool, now: bool) -> "tuple[str, datetime | None]":
    """Show how much all memories are, ask, and forget them.

    Returns:
        The id of a forgotten memory, which `restore` takes, and the day until when.

    Raises:
        ValidationError: No terminal is available to ask on.
        typer.Exit: The answer was no, or nothing is remembered.
    """
    preview = await run.service.requests.preview_all(run.caller)
    view = preview_all_view(preview)
    if not preview:
        run.screen.document({"forgotten": False, **view})
        run.screen.note("Nothing is remembered.")
        raise typer.Exit(FAILED)
    categories = ", ".join(f"{name} {count}" for name, count in view["by_category"].items())
    run.screen.note(f"{_what(preview)}: {categories}.")
    if has_archive(run) or inbox_exists(run.service.agent_id, run.service.settings):
        run.screen.note("What is archived or waits in the inbox stays; `agents delete` deletes everything for good.")
    if not yes:
        run.need_terminal("Nothing was forgotten.", "Forgetting")
        run.confirm(f"Forget all {_what(preview)}{' for good' if now else ''}?", "Nothing was forgotten.")
    outcome = await run.service.requests.forget(preview, run.caller, reason=reason)
    until = None if now else outcome.kept_until
    run.screen.document({"forgotten": True, **view, **({} if until is None else {"kept_until": until.isoformat()})})
    run.screen.show(f"Forgot {_what(preview)}.")
    return preview.gone[0].id, until


async def _archived(run: Run, words: str) -> dict[str, list[str]]:
    """Say which archived memories are meant, too: they are not forgotten with the others."""
    if not has_archive(run):
        return {}
    async with opened_archive(run) as archive:
        meant = await archive.meant(words)
    for memory in meant:
        run.screen.note(f"{memory.id}: in the archive, and stays there", style="dim")
        run.screen.note(memory.content, style="")
    if meant:
        run.screen.hint(f"`agent-memory forget {' '.join(each.id for each in meant)}` forgets what is archived.")
    return {"archived": [each.id for each in meant]}


async def _waiting(run: Run, words: str) -> dict[str, list[str]]:
    """Say what is meant of what waits in the inbox: it is rejected there, not forgotten with the others."""
    if not inbox_exists(run.service.agent_id, run.service.settings):
        return {}
    async with opened_inbox(run.service) as inbox:
        meant = await inbox.meant(words)
    for candidate in meant:
        run.screen.note(f"{candidate.id}: waits in the inbox, and stays there", style="dim")
        run.screen.note(candidate.content, style="")
    if meant:
        options = " ".join(f"--reject {each.id}" for each in meant)
        run.screen.hint(f"`agent-memory inbox {options}` takes out what waits.")
    return {"waiting": [each.id for each in meant]}


def _what(preview: "Preview") -> str:
    whole = counted(len(preview.gone), "memory", "memories") if preview.gone else ""
    cut = f"what was asked for in {counted(len(preview.cut), 'memory', 'memories')}" if preview.cut else ""
    return " and ".join(part for part in (whole, cut) if part)


async def _show(run: Run, preview: "Preview") -> None:
    replaced = await run.service.admin.replaced_by([memory.id for memory in preview.gone])
    going = {memory.id for memory in preview.gone}
    for memory in preview.gone:
        newer = replaced.get(memory.id)
        stays = f" ({newer}, which has replaced it, stays)" if newer is not None and newer not in going else ""
        run.screen.note(f"{memory.id}: to be forgotten{stays}", style="dim")
        run.screen.note(memory.content, style="")
    for each in preview.cut:
        run.screen.note(f"{each.memory.id}: to be changed", style="dim")
        run.screen.note(each.memory.content, style="")
        run.screen.note("What remains:", style="dim")
        run.screen.note(each.remains, style="")
    if preview.older:
        run.screen.note(f"They replaced {', '.join(preview.older)}; that would be forgotten, too.")
