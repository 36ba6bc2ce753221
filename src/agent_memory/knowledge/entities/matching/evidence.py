"""Evidence for or against two descriptions of one entity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Blocks: TypeAlias = Literal["", "unsure", "conflict", "all"]
"""What a piece of evidence forbids. `unsure`: a merge, because too little is known. `conflict`: a merge, also by way of
others, because it says that the two are different. `all`: that, and to suggest it."""


@dataclass(frozen=True, slots=True)
class NameEvidence:
    """One reason for or against, without any value.

    Attributes:
        says: Reason in words.
        weight: Natural logarithm of how many times likelier it makes one entity; below zero it speaks against.
        blocks: What it forbids, whatever else speaks for it.
        strong: That it is enough, beside a like name, to be taken for one.
    """

    says: str
    weight: float
    blocks: Blocks = ""
    strong: bool = False

    @property
    def contradicts(self) -> bool:
        """True if the two cannot be one entity by this alone."""
        return self.blocks in {"conflict", "all"}
