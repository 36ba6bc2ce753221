"""docs/reference/errors.md and the tree in errors.py, made of the error classes, codes and checks."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory import errors
from agent_memory.care.checks.codes import CHECKS, CODES
from agent_memory.errors import AgentMemoryError

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE: Final = Path(__file__).resolve().parents[1]
MODULE: Final = HERE / "src" / "agent_memory" / "errors.py"
_BRANCH: Final = ("├── ", "└── ")
_TREE: Final = re.compile(r"(?<=\n\n) {4}AgentMemoryError\n.*?(?=\n\n)", re.DOTALL)
_MEANINGS: Final = {
    "agent_exists": "an agent has that name",
    "already_undone": "that run of tidying was undone before",
    "ambiguous_dates": "the order of day and month in a chat is not certain",
    "ambiguous_entity": "several entities have that name",
    "ambiguous_id": "several IDs begin like this",
    "archive_needs_files": "a server has no archive",
    "backup_damaged": "the backup is not what its manifest says",
    "backup_newer": "a newer version made the backup",
    "bad_answer": "the server is not Qdrant, or refused a request",
    "blob_damaged": "a long text is not what was stored; its beginning is in the journal",
    "blob_missing": "a long text is missing; its beginning is in the journal",
    "cannot_migrate": "no embedder or engine for a migration",
    "changed": "another program changed the file during the act",
    "child_session": "only the main session may do this",
    "claim_ended": "the claim has ended",
    "claimed": "another worker has it, or you work on another step",
    "conflicting_settings": "two settings contradict each other",
    "content_damaged": "a file of a snapshot is not what was written",
    "cryptography_missing": "the extra `encryption` is not installed",
    "damaged": "the database of the workspace is damaged",
    "damaged_file": "the file cannot be parsed; nothing of it was ingested",
    "damaged_part": "one line or conversation cannot be read; the rest was ingested",
    "declaration_changed": "the declaration changed so that rows might not fit",
    "decrypting": "a decryption has to be finished first",
    "dump_damaged": "the copy of the database is damaged",
    "dump_failed": "the copy of the database could not be written; the step is done",
    "edited": "`scratchpad.yaml` has edits that were not applied yet",
    "editor_failed": "the editor ended with an error",
    "embedder_failed": "the embedder raised an error; words still find",
    "embedder_unreachable": "the embedding API does not answer",
    "empty_entry": "an entry has no text",
    "encrypted": "the files are encrypted, and no key was given",
    "encrypted_without_index": "an encrypted agent has no engine index",
    "ending": "the process ends; the next one embeds the rest",
    "engine": "the vector engine failed; search continues without it",
    "engine_gone": "the engine's process ended",
    "engine_missing": "the extra `vector` is not installed",
    "error": "code of the root class",
    "exists": "a workspace, snapshot or file of that name exists",
    "file_exists": "the file exists; pass `--force`",
    "file_name": "the name of the file cannot be stored",
    "file_too_large": "a file of a snapshot has more than 100 MB",
    "foreign_collection": "another program made the collection",
    "foreign_point": "another author wrote the point",
    "gone": "the memory was moved or deleted while in use",
    "host_file": "the configuration of a host cannot be read or is of another form",
    "id_taken": "another record has this ID",
    "in_the_way": "a link or folder is in place of a file",
    "in_use": "another process has files of the agent open",
    "inbox_needs_files": "a server has no inbox",
    "ingestion_off": "ingestion is switched off",
    "inside_root": "the export would be written among the memories",
    "invalid_agent_id": "not a valid name of an agent",
    "invalid_filter": "a filter is wrong, or its field unknown",
    "invalid_group": "not a valid group",
    "invalid_reason": "a reason has at most 200 characters",
    "is_item": "an item is never in the scratchpad",
    "journal_missing": "the journal existed and is missing or empty",
    "kept_damaged": "`kept.encrypted` was changed",
    "kept_too_large": "`kept.encrypted` would be too large",
    "key_file": "`encryption.json` or the file with the key cannot be used",
    "key_refused": "the server refused the key (401, 403)",
    "keyring_missing": "the extra `keyring` is not installed",
    "knowledge_needs_files": "a server stores no documents and conversations",
    "low_trust": "text from an untrusted source is not shown unasked",
    "model_broken": "the model cannot be loaded",
    "model_missing": "the extra of the model is not installed",
    "model_unknown": "no embedder or model has that name",
    "needs_files": "a server has no documents, pages or entities",
    "needs_user": "the user has to ask for it, or to accept a proposal",
    "network_folder": "the folder of a workspace is on a shared disk",
    "newer_format": "a newer version wrote the files; they are read only",
    "no_agents": "no agent exists yet",
    "no_api_key": "the API key is not set",
    "no_backup": "no backup to restore exists",
    "no_claim": "you have no claim, or not this one",
    "no_database": "the database of the workspace is missing",
    "no_editor": "no editor, or no terminal",
    "no_embedder": "no embedder is installed",
    "no_file": "no such file",
    "no_text_column": "no column of a CSV file is known to hold the text",
    "no_locks": "locks do not work on this file system; nothing is written",
    "no_such_pair": "these two memories do not conflict",
    "no_workspace": "no workspace here",
    "not_a_backup": "not one of our backups",
    "not_a_file": "a folder, pipe or link is in place of a file",
    "not_a_journal": "not a journal",
    "not_an_export": "not an export",
    "not_changeable": "the field cannot be changed",
    "not_covered": "turns to summarize are not stored, or of another group",
    "not_downloaded": "a cloud service has not downloaded the file",
    "not_empty": "the workspace has rows",
    "not_encodable": "the value cannot be written as JSON",
    "not_encrypted": "a plain file is in place of an encrypted one",
    "not_installed": "a package that the command needs is missing",
    "not_of_this_group": "the topic belongs to another group",
    "not_produced": "the step has not produced what it must",
    "not_ready": "the step cannot run yet",
    "not_removed": "a folder could not be deleted",
    "not_verified": "an export differs from the memory; nothing of it was deleted",
    "not_searchable": "the table declares nothing to search",
    "not_text": "not UTF-8 or UTF-16",
    "nothing_said": "neither side said anything",
    "nothing_to_back_up": "the agent has stored nothing",
    "nothing_to_encrypt": "the agent has stored nothing",
    "nothing_to_reset": "the agent has no files to move",
    "nothing_to_restore": "nothing happened that could be undone",
    "nothing_to_summarise": "the turns state nothing",
    "of_a_group": "a session of a group purges nothing",
    "old_server": "Qdrant older than 1.16",
    "only_secret": "the text is only a secret",
    "other_embedder": "the collection has vectors of another embedder",
    "other_key": "the backup has another key",
    "outside_root": "a link leads out of the storage root",
    "own_export": "an export of ours is imported by the command",
    "own_file": "the file belongs to a memory of ours",
    "package_absent": "a package that wrote files of the agent is not installed",
    "path_outside": "a path is outside of the storage root",
    "purge_key": "`purge.key` is missing or damaged; nothing was opened",
    "purge_list": "`purged.yaml` is missing or damaged; nothing was opened",
    "queue_missing": "the extra `redis` is not installed",
    "reader_died": "reading the record ended the process; it is quarantined",
    "refused": "the page is read only, or was opened by another program",
    "replaced": "a replaced memory is archived with its successor",
    "replaced_already": "one of the two replaced the other before",
    "reserved_link": "names of links may not begin with `_`",
    "same_entity": "the two entities are one already",
    "secret_refused": "a text of another framework has a secret, and may not be redacted",
    "secret_in_declaration": "the declaration has a secret",
    "server_down": "the server does not answer",
    "several_documents": "several documents have that name",
    "several_groups": "the turns are of several groups",
    "slow_pattern": "a pattern cannot be matched in time",
    "stopped": "the user stopped storing in this conversation or project",
    "storage_root": "the storage root is not a usable path",
    "superseded": "a newer memory replaced it",
    "switched_off": "memory is off",
    "symlink": "a symbolic link is not followed",
    "to_convert": "a file has to be converted to text first",
    "too_long": "the text is too long",
    "too_many": "too many values",
    "too_many_files": "the process has no file descriptor left",
    "unknown": "the outcome of a write is unknown",
    "unknown_agent": "no agent has that name",
    "unknown_category": "no memory has that category",
    "unknown_column": "no such column",
    "unknown_document": "no document has that name",
    "unknown_entity": "no entity has that name",
    "unknown_entry_type": "no such type of entry",
    "unknown_form": "the format of the file is unknown",
    "unknown_host": "`connect` knows no such host",
    "unknown_phase": "no such phase",
    "unknown_speaker": "no speaker of a chat has the name of `--me`",
    "unknown_table": "no such table",
    "unknown_tool": "no such tool",
    "unsupported_backend": "the backend cannot be used here",
    "usage": "wrong usage of the command line",
    "vector_count": "the embedder returned too few vectors",
    "vector_dimension": "vectors have another length",
    "vector_not_finite": "a vector has NaN or infinity",
    "vector_shape": "the embedder returned no vectors",
    "weak_key": "a passphrase has less than 12 characters",
    "which_agent": "several agents exist; name one",
    "wrong_key": "the key is another one, or no row has this key",
    "wrong_name": "not a valid name of a worker or agent",
    "wrong_seconds": "not a valid duration",
    "wrong_value": "the value does not fit the column",
    "wrong_weights": "the weights of the model are not the expected ones",
}
_INTRODUCTION: Final = """\
# Errors and findings

Generated from `errors.py`, the checks and `scripts/errors_page.py` by `make docs`.

Tools return `message`, `code` and `recovery` (what to do); Python raises a class of this tree. Commands print
`error: MESSAGE [CODE]` and `hint: RECOVERY`.
"""


def document() -> str:
    """Return docs/reference/errors.md."""
    lines = [_INTRODUCTION, "## Classes", "", "Class, code and number; what it means; what to do.", ""]
    for error, depth in _walk(AgentMemoryError, 0):
        first = (inspect.getdoc(error) or "").splitlines()[0]
        head = f"`{error.__name__}` · `{error.default_code}` · {error.number}"
        lines.append(f"{'    ' * depth}- {head}: {first} *{error.default_recovery}*")
    lines += ["", "## Codes", "", "Codes of the classes above, and:", ""]
    lines += [f"- `{code}`: {_MEANINGS[code]}" for code in sorted(_MEANINGS)]
    lines += ["", "## Findings of the doctor", "", "`--repair` does what is in brackets.", ""]
    repeated = [text for text, times in Counter(row.repair for row in CODES.values()).items() if text and times > 1]
    lines += [f"- *{number}*: {text}" for number, text in enumerate(repeated, 1)]
    for code, row in CODES.items():
        repair = f"*{repeated.index(row.repair) + 1}*" if row.repair in repeated else row.repair
        repair = f" ({repair})" if repair else ""
        lines.append(f"- `{code}`, {row.severity.name.lower()}: {row.meaning}{repair}")
    lines += ["", "## Health checks", "", "Limits are settings below [`health`](configuration.md#health).", ""]
    lines += ["| check | what is checked | warning | critical |", "|---|---|---|---|"]
    lines += [f"| `{code}` | {row.about} | {row.warning} | {row.critical} |" for code, row in CHECKS.items()]
    return "\n".join(lines) + "\n"


def documented_codes() -> set[str]:
    """Return the codes that the page explains."""
    return {error.default_code for error, _ in _walk(AgentMemoryError, 0)} | set(_MEANINGS)


def write_tree() -> None:
    """Write the tree of classes into the docstring of errors.py."""
    source = MODULE.read_text(encoding="utf-8")
    MODULE.write_text(_TREE.sub(lambda _: indent(render_tree()), source, count=1), encoding="utf-8")


def indent(text: str) -> str:
    """Indent each line as in the docstring."""
    return "\n".join(f"    {line}" for line in text.splitlines())


def tree_of_module() -> str:
    """Return the tree that the docstring of errors.py has."""
    docstring = ast.get_docstring(ast.parse(MODULE.read_text(encoding="utf-8")), clean=False) or ""
    match = _TREE.search(docstring)
    return match[0] if match else ""


def render_tree() -> str:
    """Return the classes below the root, each with the first line of its docstring."""
    return "\n".join(["AgentMemoryError", *_branches(AgentMemoryError, "")])


def _branches(parent: type[AgentMemoryError], prefix: str) -> Iterator[str]:
    children = _children(parent)
    for child in children:
        is_last = child is children[-1]
        first = (inspect.getdoc(child) or "").splitlines()[0].removesuffix(".")
        name = prefix + _BRANCH[is_last] + child.__name__
        yield f"{name:<34} {first[0].lower()}{first[1:]}"
        yield from _branches(child, prefix + ("    " if is_last else "│   "))


def _walk(error: type[AgentMemoryError], depth: int) -> Iterator[tuple[type[AgentMemoryError], int]]:
    yield error, depth
    for child in _children(error):
        yield from _walk(child, depth + 1)


def _children(error: type[AgentMemoryError]) -> list[type[AgentMemoryError]]:
    """Return the direct subclasses of errors.py in the order of the file."""
    return [child for child in error.__subclasses__() if child.__module__ == errors.__name__]
