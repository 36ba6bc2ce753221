"""Daily use of a background model: tokens, results, and agreement."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from agent_memory.files.atomic import read_json, replace_file, translated
from agent_memory.files.names import MODEL_USE
from agent_memory.memory.caller import proposal_id

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path


@dataclass(slots=True)
class ModelUse:
    """Use of a background model by one agent.

    Attributes:
        is_agreed: True after the user's yes to the first estimate.
        day: Local day of `tokens`, as in 2026-03-01.
        tokens: Tokens of prompts and answers of that day.
        asked: Passages that the model read.
        added: Statements that were stored.
        verbatim: Stored statements in the words of their document.
        refused: Statements that the checks refused.
        paused: Clause why the model is not asked now, empty if it is.
    """

    is_agreed: bool = False
    day: str = ""
    tokens: int = 0
    asked: int = 0
    added: int = 0
    verbatim: int = 0
    refused: int = 0
    paused: str = ""

    @classmethod
    def read(cls, folder: Path, now: datetime) -> Self:
        """Return the use in an agent's folder, with the tokens of today.

        A damaged file has no yes.
        """
        stored = read_json(folder / MODEL_USE) or {}
        use = cls()
        for name, default in asdict(use).items():
            if type(stored.get(name)) is type(default):
                setattr(use, name, stored[name])
        today = now.astimezone().date().isoformat()
        if use.day != today:
            use.day, use.tokens, use.paused = today, 0, ""
        return use

    def write(self, folder: Path) -> None:
        """Write the use durably.

        Raises:
            StorageError: The file cannot be written.
        """
        path = folder / MODEL_USE
        with translated(path, "write"):
            replace_file(path, json.dumps(asdict(self)).encode(), durable=True)

    def get_counts(self) -> dict[str, Any]:
        """Return the counts for a status."""
        counts = {"asked": self.asked, "added": self.added, "refused": self.refused, "tokens_today": self.tokens}
        return {**counts, "paused": self.paused or None, "is_agreed": self.is_agreed}


def get_model_proposal(agent_id: str) -> str:
    """Return the ID of the proposal that a background model digests passages."""
    return proposal_id("model", agent_id)
