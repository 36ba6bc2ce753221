"""The commands for an agent whose files are encrypted."""

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer

from agent_memory.cli.exit_codes import FAILED
from agent_memory.cli.options import Yes
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.errors import UnsupportedError
from agent_memory.files.wording import counted
from agent_memory.settings import EncryptionSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.care.privacy.file_encryption import EncryptionResult
    from agent_memory.files.layout import AgentFolder

_SHOWN: Final = 10


@command()
async def encrypt(run: AgentContext, *, yes: Yes = False) -> None:
    """Encrypt an agent and its backups with a key.

    The key is what AGENT_MEMORY_KEY holds: 32 bytes in hexadecimal or base64, or a passphrase of 12 characters or more.
    AGENT_MEMORY_KEY_FILE, AGENT_MEMORY_KEY_COMMAND or AGENT_MEMORY_KEY_KEYRING name another source. Without the key
    the memory cannot be read. An interrupted command continues when repeated.
    """
    from agent_memory.care.privacy.file_encryption import encrypt as encrypt_folder

    folder = _folder(run)
    if not yes:
        warning = "Without the key the memory is lost: it cannot be recovered. Keep the key in two places."
        run.confirm(f"{warning}\nEncrypt the memory of {folder.agent_id}?", "Nothing was changed.", "Encrypting")
    await run.service.settle()
    done = await asyncio.to_thread(encrypt_folder, folder, _progress(run))
    run.screen.document({"agent_id": folder.agent_id, **asdict(done)})
    _show(run, done)
    if not done.is_clean:
        raise typer.Exit(FAILED)


@command()
async def decrypt(run: AgentContext, *, yes: Yes = False) -> None:
    """Decrypt the files of an agent; its backups stay encrypted."""
    from agent_memory.care.privacy.file_encryption import decrypt as decrypt_folder

    folder = _folder(run)
    if not yes:
        run.confirm(f"Write the memory of {folder.agent_id} in plain text?", "Nothing was changed.", "Decrypting")
    await run.service.settle()
    unpacked = await asyncio.to_thread(decrypt_folder, folder, _progress(run))
    run.service.pad.schedule(run.caller)
    run.screen.document({"agent_id": folder.agent_id, "unpacked": unpacked})
    run.screen.show(f"The memory of {folder.agent_id} is no longer encrypted.")
    run.screen.note("Its backups are still encrypted with the same key.", style="dim")


@command()
async def rekey(
    run: AgentContext,
    *,
    variable: Annotated[
        str, typer.Option("--new-variable", metavar="NAME", help="Environment variable with the new key.")
    ] = "AGENT_MEMORY_NEW_KEY",
    file: Annotated[str | None, typer.Option("--new-file", metavar="FILE", help="File with the new key.")] = None,
    program: Annotated[
        str | None, typer.Option("--new-command", metavar="COMMAND", help="Command that prints the new key.")
    ] = None,
    keyring: Annotated[
        str | None, typer.Option("--new-keyring", metavar="SERVICE", help="Service name of the new key in the keyring.")
    ] = None,
) -> None:
    """Change the key of an encrypted agent; one small file is rewritten.

    Older backups still open with the old key only.
    """
    from agent_memory.care.privacy.file_encryption import change_key

    folder = _folder(run)
    new = EncryptionSettings(key_variable=variable, key_file=file, key_command=program, key_keyring=keyring)
    await asyncio.to_thread(change_key, folder, new)
    run.screen.document({"agent_id": folder.agent_id, "changed": True})
    run.screen.show(f"The memory of {folder.agent_id} now opens with the new key.")
    run.screen.note("Older backups open with the old key only: keep it as long as you keep them.")


def _folder(run: AgentContext) -> "AgentFolder":
    folder = run.service.folder
    if folder is None:
        raise UnsupportedError(
            "These memories are on a server; only files can be encrypted.",
            recovery="Ask the operator of the server to encrypt its disks.",
        )
    return folder


def _progress(run: AgentContext) -> "Callable[[str], None]":
    return lambda name: run.screen.note(f"{name} …", style="dim")


def _show(run: AgentContext, done: "EncryptionResult") -> None:
    from agent_memory.care.privacy.file_encryption import BEYOND_ENCRYPTION

    if done.packed:
        names = ", ".join(done.packed[:_SHOWN]) + (" …" if len(done.packed) > _SHOWN else "")
        run.screen.show(f"Packed until it is decrypted: {names}.")
    if done.backups:
        run.screen.show(f"Encrypted {counted(len(done.backups), 'backup')}.")
    for sentence in done.failed:
        run.screen.show(f"Not encrypted: {sentence}", style="red")
    if done.found:
        run.screen.show(f"Plain text of a memory is still in: {', '.join(done.found)}.", style="red")
    else:
        what = f"{done.searched:,} texts, names and labels"
        run.screen.show(f"Encrypted. {what} were searched for in every file: none is unencrypted.")
    run.screen.note(f"Not reached: {'; '.join(BEYOND_ENCRYPTION)}.", style="dim")
