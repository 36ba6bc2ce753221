"""`Chains`: memories that go and come together: one that counts, and the older ones that it replaced. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_memory.models import Memory


class Chains:
    """What belongs to a memory that counts.

    Were an older version left behind when the newer one goes, it would count again; were it to go alone, forgetting
    the newer one would leave it.

    Args:
        memories: All of them.
        replaced: Which are replaced: id to the id of the one that replaces it.
    """

    def __init__(self, memories: Iterable[Memory], replaced: Mapping[str, str]) -> None:
        self.memories = {memory.id: memory for memory in memories}
        self.replaced = replaced

    def heads(self) -> list[Memory]:
        """Return those that no other one replaces, in the order given; expired ones are among them."""
        return [memory for memory in self.memories.values() if memory.id not in self.replaced]

    def of(self, head: Memory) -> list[Memory]:
        """Return a memory with the older ones that it replaced, itself or through others, the newest first."""
        chain, older = {head.id: head}, head.supersedes
        while older is not None and older in self.memories and older not in chain:
            if self.replaced.get(older) not in chain:
                break  # it counts, or another one has replaced it
            chain[older] = self.memories[older]
            older = self.memories[older].supersedes
        return list(chain.values())


def whole_chains(wanted: Iterable[str], memories: Mapping[str, Memory]) -> list[str]:
    """Return ids with those of all that they replaced and that replaced them, itself or through others.

    One that comes back alone would count, though another one had replaced it.
    """
    by: dict[str, list[str]] = {}
    for memory in memories.values():
        if memory.supersedes in memories:
            by.setdefault(memory.supersedes or "", []).append(memory.id)
    found: dict[str, None] = {}
    pending = [one for one in wanted if one in memories]
    while pending:
        one = pending.pop()
        if one in found:
            continue
        found[one] = None
        older = memories[one].supersedes
        pending += [*by.get(one, ()), *([older] if older in memories and older is not None else [])]
    return list(found)
