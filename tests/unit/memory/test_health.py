"""Health in `memory_status`: silent when all is well, one line for the model when something wants attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.memory import MemoryService
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from tests.support import NOON, memory_of

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any


async def _health(root: Path) -> dict[str, Any]:
    settings = ServiceSettings(storage_root=str(root), embedder="none")
    storage = FileStorage("bob", settings=settings)
    try:
        if not await storage.count():
            await storage.store(memory_of("Releases go out on Tuesdays."))
        return (await MemoryService(storage, settings, clock=lambda: NOON).status()).health
    finally:
        await storage.close()


async def test_it_is_silent_when_all_is_well(root: Path) -> None:
    assert await _health(root) == {"status": "ok"}


async def test_what_wants_attention_is_one_line(root: Path) -> None:
    await _health(root)
    (root / "bob").chmod(0o755)
    health = await _health(root)
    assert health["status"] == "attention"
    assert health["message"] == (
        "Other users of this machine may read the folder. `agent-memory doctor` tells what to do."
    )


async def test_the_gravest_is_named_and_the_others_are_counted(root: Path) -> None:
    await _health(root)
    (root / "bob").chmod(0o755)
    (root / "bob" / "memories.rejected.yaml").mkdir()
    message = (await _health(root))["message"]
    assert message.startswith("memories.rejected.yaml cannot be used")
    assert "And 1 more: `agent-memory doctor`" in message


async def test_damaged_lines_are_still_the_first_thing_told(root: Path) -> None:
    await _health(root)
    with (root / "bob" / "memories.yaml").open("a") as journal:
        journal.write("junk\n")
    (root / "bob").chmod(0o755)
    health = await _health(root)
    assert (health["status"], health["problems"]) == ("damaged", 1)


async def test_how_old_a_kept_edit_is_depends_on_the_present_it_is_given(root: Path) -> None:
    await _health(root)
    (root / "bob" / f"scratchpad.broken-{NOON:%Y%m%dT%H%M%S}.yaml").write_text("- [")
    assert (await _health(root))["message"].startswith("An edit of scratchpad.yaml was refused")
