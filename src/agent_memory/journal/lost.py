"""`memories.lost-….yaml`: records that a session knew before another program removed or changed them.

An editor that saves what it loaded an hour ago, a file cut short or an old copy put in place undo what was
acknowledged. Who still knows it writes it down; whether it comes back is for a person to say
(`agent-memory import --trusted`), who may have removed it on purpose.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from agent_memory.journal.files import replace_file, translated
from agent_memory.journal.format import encode_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def keep_lost(journal: Path, records: Mapping[str, Mapping[str, Any]]) -> Path:
    """Write records by id beside `journal`, one YAML document each, and return the file; the same ones are kept once.

    Raises:
        StorageError: They could not be written.
    """
    content = b"".join(encode_line({"id": record_id, **fields}) for record_id, fields in records.items())
    path = journal.with_name(f"{journal.stem}.lost-{zlib.crc32(content):08x}{journal.suffix}")
    with translated(path, "write"):
        if not path.exists():
            replace_file(path, content, durable=True)
    return path
