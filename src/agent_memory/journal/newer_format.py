"""Errors about journals that a newer version wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.errors import ReadOnlyError, UnsupportedError
from agent_memory.journal.format import ENCRYPTED_FORMAT, FORMAT, Entry, Header
from agent_memory.settings.installation import installed_version
from agent_memory.settings.installed_program import build_upgrade_command

if TYPE_CHECKING:
    from collections.abc import Iterable


def describe_newer(name: str, header: Header) -> str:
    """Return a clause with both formats.

    Args:
        name: File name of the journal.
        header: Header of a format that is too new.
    """
    newest, supported = max(header.format, header.min_reader), FORMAT if header.key is None else ENCRYPTED_FORMAT
    return (
        f"{name} was written by a newer version of agent-memory (format {newest}; "
        f"agent-memory {installed_version()} writes format {supported})"
    )


def build_newer_error(name: str, header: Header) -> ReadOnlyError:
    """Return the error for a write to a newer journal.

    Args:
        name: File name of the journal.
        header: Header of a format that is too new.
    """
    return ReadOnlyError(
        f"{describe_newer(name, header)}; it is only read here.", code="newer_format", recovery=advise_upgrade()
    )


def advise_upgrade() -> str:
    """Return the advice to upgrade, with the command."""
    return f"Upgrade, then try again: {build_upgrade_command()}"


def check_known(entries: Iterable[Entry]) -> None:
    """Check that this version understands all lines.

    Raises:
        UnsupportedError: A newer version wrote a line that this one does not understand.
    """
    for entry in entries:
        if entry.opaque:
            raise UnsupportedError(
                f"Line {entry.seq} was written by a newer version of agent-memory than {installed_version()}; this "
                "journal was not changed.",
                code="newer_format",
                recovery=advise_upgrade(),
            )
