"""Bob's memory in files, for tests of what becomes of one thing he was told, which is `SECRET`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.care.privacy.purge import Purging
from agent_memory.memories import FileStorage
from agent_memory.memory import MemoryService
from agent_memory.settings import ServiceSettings
from tests.support import read_files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import FrozenClock

SECRET = "Ann's salary is seventy-two thousand a year."
OTHER = "Kate owns the ledger of the harbour."


class House:
    """Bob's memory; `service` is opened anew by `again`."""

    def __init__(self, root: Path, clock: FrozenClock) -> None:
        self.root, self.clock, self.folder = root, clock, root / "bob"
        self.settings = ServiceSettings(embedder="none", storage_root=str(root))
        self.service = self._opened()

    def _opened(self) -> MemoryService:
        return MemoryService(
            FileStorage("bob", settings=self.settings, clock=self.clock), self.settings, clock=self.clock
        )

    async def again(self) -> MemoryService:
        await self.service.close()
        self.service = self._opened()
        return self.service

    async def keep(self, content: str, **fields: Any) -> str:
        return (await self.service.store({"content": content, **fields})).memory.id

    async def purge(self, *ids: str) -> Any:
        purging = Purging(self.service, clock=self.clock)
        return await purging.run(await purging.plan(ids))

    def holding(self, text: str = SECRET) -> list[str]:
        """Return the files under the root in which a text stands, by a search of the test's own."""
        words = text.split()[1:-1]
        needle = " ".join(words).encode()
        return [str(path.relative_to(self.root)) for path, content in read_files(self.root) if needle in content]
