"""An account of all that is held, as a part of `agent-memory export`."""

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.cli.running import Run
from agent_memory.errors import UnsupportedError, ValidationError
from agent_memory.files.atomic import replace_file, translated
from agent_memory.files.temporary import remove_leftovers
from agent_memory.files.wording import counted
from agent_memory.models import to_text, utc_now

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from agent_memory.files.layout import AgentFolder
    from agent_memory.privacy.account import Account

ZIP: Final = ".zip"
_AT_ONCE: Final = 1 << 20


async def export_account(run: Run, path: Path, about: str | None) -> None:
    """Write what is held about a name, or all of the agent, to a zip file; say what is in it."""
    folder = run.service.admin.folder
    if folder is None:
        raise UnsupportedError(
            "These memories lie on a server; an account is made of files.",
            recovery="Export them as .jsonl, or `agent-memory pull` them first.",
        )
    if about is not None and not about.strip():
        raise ValidationError("--about needs a name; nothing was written.", code="usage")
    await run.service.settle()
    account = await asyncio.to_thread(_write, folder, path, about)
    counts = dict(account.by_kind)
    document = {"file": str(path), "names": list(account.names), "records": counts, "forgotten": account.gone}
    run.screen.document({**document, "lines_of_other_files": account.lines})
    total = counted(account.by_kind.total(), "record")
    if account.names:
        run.screen.note(f"Looked for: {', '.join(account.names)}.", style="")
    if not account.by_kind and not account.lines:
        run.screen.note("Nothing was found; the archive says so.")
    more = f", {account.gone} of them forgotten and still in the files," if account.gone else ""
    run.screen.show(f"Wrote {total}{more} to {path}. Begin with its README.md, which says what was not looked into.")


def _write(folder: "AgentFolder", path: Path, about: str | None) -> "Account":
    from agent_memory.privacy.account import holdings_in, names_of, write_account

    names = None if about is None else names_of(about.strip(), holdings_in(folder))
    with translated(path, "write"):
        remove_leftovers(path.parent, of=path.name)  # of an export that was killed
        with tempfile.TemporaryFile(dir=path.parent) as whole:
            account = write_account(folder, whole, to_text(utc_now()), names)
            whole.seek(0)
            replace_file(path, _pieces(whole), durable=True)
    return account


def _pieces(file: "IO[bytes]") -> "Iterator[bytes]":
    return iter(lambda: file.read(_AT_ONCE), b"")
