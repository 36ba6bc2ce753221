"""Identifiers of agents, records and origins, with checks; names of categories."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection
from typing import Final, Literal, NamedTuple, Self, get_args

from agent_memory.errors import ValidationError
from agent_memory.late import compile_late
from agent_memory.models.text import content_hash, get_duplicate_key

DEFAULT_AGENT: Final = "me"
"""Agent of a session or command without an agent's name."""
DEFAULT_ROOT: Final = "~/.amplifier/memory"
"""Folder of all agents, if none is configured."""
IMPORT_PREFIX: Final = "import-"
"""Beginning of the session ID of an import, or of its undo."""
MAX_PROJECT_CHARS: Final = 100
CATEGORIES: Final = (
    "preference",
    "decision",
    "discovery",
    "pattern",
    "task",
    "bugfix",
    "note",
    "question",
    "insight",
)
"""Built-in categories: closed in the tools' schema, open in the journal."""
RULE_CATEGORIES: Final = frozenset(("preference", "pattern", "decision"))
"""Categories of what a session is to keep to."""
INSTRUCTION_CATEGORIES: Final = ("preference", "pattern", "convention", "instruction")
"""Categories of standing instructions. They bear on requests that share no word with them."""
_AGENT_ID: Final = compile_late(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
ID_DIGITS: Final = "[0-9a-f]{12}"
"""Pattern of an ID after its prefix: 48 random bits."""
_MEMORY_ID: Final = compile_late(f"mem-{ID_DIGITS}")
# https://learn.microsoft.com/windows/win32/fileio/naming-a-file: such a folder cannot exist on Windows.
_WINDOWS_DEVICES: Final = frozenset(
    {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}
)


def check_agent_id(agent_id: object) -> str:
    """Return `agent_id` if it can name an agent's folder.

    Args:
        agent_id: 1 to 64 letters, digits, `_` or `-`, beginning with a letter or digit; no Windows device name.

    Raises:
        ValidationError: It is anything else (`invalid_agent_id`).
    """
    if isinstance(agent_id, str) and _AGENT_ID.fullmatch(agent_id) and agent_id.lower() not in _WINDOWS_DEVICES:
        return agent_id
    from agent_memory.redaction import quoted  # its patterns load only for an invalid name

    raise ValidationError(
        f"{quoted(agent_id)} cannot be an agent's name.",
        code="invalid_agent_id",
        recovery="Use 1 to 64 letters, digits, '_' or '-', beginning with a letter or digit (not a name such as CON).",
    )


def new_id(prefix: str) -> str:
    """Return a new ID: the prefix and 12 random hexadecimal digits."""
    return f"{prefix}{secrets.token_hex(6)}"


def new_memory_id() -> str:
    """Return a new ID of a memory."""
    return new_id("mem-")


def new_import_session() -> str:
    """Return a new session ID for an import or its undo."""
    return f"{IMPORT_PREFIX}{secrets.token_hex(4)}"


def get_import_id(content: str) -> str:
    """Return the ID of an imported memory, derived from its text.

    Texts that differ by case or compatibility forms share it; `get_exact_import_id` is for the later one of these.
    """
    return f"mem-{content_hash(content.encode('utf-8', 'replace').decode())[:12]}"


def get_exact_import_id(content: str) -> str:
    """Return an import ID that only duplicates of a text share."""
    key = get_duplicate_key(content).encode("utf-8", "replace")
    return f"mem-{hashlib.sha256(b'exact ' + key).hexdigest()[:12]}"


def is_memory_id(value: object) -> bool:
    """Return True if a value has the form of a memory's ID."""
    return isinstance(value, str) and _MEMORY_ID.fullmatch(value) is not None


def check_id(record_id: object) -> None:
    """Check that an ID is a text.

    Raises:
        ValidationError: It is not; names its type.
    """
    if not isinstance(record_id, str):
        raise ValidationError(f"An id is text, got {type(record_id).__name__}; nothing was looked up or changed.")


def check_texts(texts: object, what: str) -> None:
    """Check that an argument is a collection of texts, not one text.

    Raises:
        ValidationError: It is not; names its type.
    """
    if not isinstance(texts, Collection) or isinstance(texts, str | bytes):
        raise ValidationError(f"The {what} are a list of texts, got {type(texts).__name__}.")
    for text in texts:
        if not isinstance(text, str):
            raise ValidationError(f"The {what} are a list of texts, got {type(text).__name__} in it.")


def derived_id(prefix: str, *parts: object) -> str:
    """Return an ID made of its parts; repeating adds no record."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass"))
    return f"{prefix}{digest.hexdigest()[:12]}"


MAX_ORIGIN_CHARS: Final = 120
OriginKind = Literal[
    "typed",
    "pasted",
    "attached",
    "quoted",
    "model via MCP",
    "model",
    "agent after",
    "tool",
    "file",
    "import",
    "unknown",
]
"""Way by which a text came in; a detail after it names a package, client, file or format."""
PROJECT_OUTPUT: Final = "output of this project"
"""Detail of `agent after` if only commands and files of the project were read, without network."""
_ORIGIN_KINDS: Final[tuple[OriginKind, ...]] = get_args(OriginKind)


class TextOrigin(NamedTuple):
    """Way by which a text came in, such as `agent after some_package`.

    Attributes:
        kind: Kind of the way.
        detail: Package, client, file or format; empty if unknown.
    """

    kind: OriginKind = "unknown"
    detail: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the origin that a text names, unknown if it names none."""
        for kind in _ORIGIN_KINDS:
            if text == kind or text.startswith(f"{kind} "):
                return cls(kind, text[len(kind) + 1 :])
        return cls()

    @property
    def doubt(self) -> str:
        """Return the reason of an agent's low trust, or an empty string."""
        if self.kind == "model via MCP":
            return "its MCP client has no hooks that report what was typed and read"
        if self.kind != "agent after":
            return ""
        return f"untrusted text was in the conversation{f': {self.detail}' if self.detail else ''}"

    def __str__(self) -> str:
        """Return the printed form; unusual characters of a name become `_`."""
        detail = re.sub(r"[^\w.:@ +-]", "_", self.detail)[:MAX_ORIGIN_CHARS]
        return f"{self.kind} {detail}".strip()


AFTER_PROJECT: Final = str(TextOrigin("agent after", PROJECT_OUTPUT))
"""Printed origin of what the agent stores after output of the project alone."""
VIA: Final = " via "
"""Between such an origin and the host that stored it."""
