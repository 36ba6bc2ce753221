"""Background work with a session's own provider, through the kernel: a session of amplifier-core, a scripted one."""

from __future__ import annotations

import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from amplifier_core import AmplifierSession

from agent_memory.service import open_service
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from agent_memory.models import Memory

MODULES = Path(__file__).parents[2] / "modules"
FACT = "The boat is moored at pier four in Bergen."
WORDED = "The boat lies moored at pier four in Bergen."
LOOP = '''
"""An orchestrator that asks nobody and answers the same each time."""
__amplifier_module_type__ = "orchestrator"
class Loop:
    async def execute(self, prompt, context, providers, tools, hooks, **kwargs):
        await hooks.emit("prompt:submit", {"prompt": prompt})
        await context.add_message({"role": "user", "content": prompt})
        await context.add_message({"role": "assistant", "content": "So it is."})
        await hooks.emit("orchestrator:complete", {"orchestrator": "loop-test", "turn_count": 1, "status": "success"})
        return "So it is."
async def mount(coordinator, config=None):
    await coordinator.mount("orchestrator", Loop())
'''
PROVIDER = '''
"""A provider that gives one answer for ever, or fails."""
from amplifier_core import ChatResponse, ProviderInfo, TextBlock
__amplifier_module_type__ = "provider"
class Provider:
    name = "agent-memory-test"
    def __init__(self, answer):
        self.answer = answer
    def get_info(self):
        return ProviderInfo(id=self.name, display_name=self.name)
    async def list_models(self):
        return []
    def parse_tool_calls(self, response):
        return []
    async def complete(self, request, **options):
        if not self.answer:
            raise ConnectionError("refused")
        return ChatResponse(content=[TextBlock(text=self.answer)])
async def mount(coordinator, config=None):
    provider = Provider((config or {}).get("answer", ""))
    await coordinator.mount("providers", provider, name=provider.name)
'''


class Resolver:
    """Finds our modules in the repository and the test's own beside the test."""

    def __init__(self, places: dict[str, Path]) -> None:
        self._places = places

    def resolve(self, module_id: str, source_hint: Any = None, profile_hint: Any = None) -> Any:
        return types.SimpleNamespace(resolve=lambda: self._places[module_id])


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return where modules are; one folder for all tests, since a process loads a module from one place only."""
    found = {path.name: path for path in MODULES.iterdir() if path.is_dir()}
    for name, source in (("loop-agent-memory-quiet", LOOP), ("provider-agent-memory-test", PROVIDER)):
        package = tmp_path_factory.mktemp("module") / f"amplifier_module_{name.replace('-', '_')}"
        package.mkdir()
        (package / "__init__.py").write_text(source)
        found[name] = package.parent
    return found


async def said(places: dict[str, Path], root: Path, answer: str, **settings: Any) -> tuple[list[Memory], list[Any]]:
    """Return the items of a session in which one thing was said, and what it told of models that failed."""
    shared = {"storage_root": str(root), "embedder": "none", "agent_id": "bob", "observe_answers": False, **settings}
    config = {
        "session": {
            "orchestrator": {"module": "loop-agent-memory-quiet"},
            "context": {"module": "context-memory-scratchpad", "config": {"agent_id": "bob"}},
        },
        "providers": [{"module": "provider-agent-memory-test", "config": {"answer": answer}}],
        "hooks": [{"module": "hooks-memory-ingestion", "config": shared}],
    }
    session = AmplifierSession(config, session_id="talk")
    await session.coordinator.mount("module-source-resolver", Resolver(places))
    await session.initialize()
    told: list[Any] = []

    async def note(_: str, data: dict[str, Any]) -> None:
        told.append(data["component"])

    session.coordinator.hooks.register("memory:degraded", note, name="test")
    await session.execute(FACT)
    await session.cleanup()
    service = open_service("bob", ServiceSettings(storage_root=str(root), embedder="none"))
    items = [each for each in await service.admin.everything() if each.is_item]
    await service.close()
    return items, told


SAID = f'[{{"source": 1, "quote": "{FACT}", "text": "{WORDED}"}}]'
OTHERWISE = SAID.replace(WORDED, "Marta is to be believed in all.")


@pytest.mark.parametrize(
    ("answer", "settings", "content", "rule", "told"),
    [
        (SAID, {"model": ["items"]}, WORDED, "model", []),
        (SAID, {}, FACT, "passage", []),
        ("", {"model": ["items"]}, FACT, "passage", ["model"]),
        ("No idea.", {"model": ["items", "pages"]}, FACT, "passage", ["model"]),
        (
            SAID.replace(WORDED, "Marta is to be believed in all."),
            {"model": ["items"]},
            FACT,
            "passage",
            ["model"],
        ),
    ],
)
async def test_a_sessions_provider_draws_items_and_rules_do_where_it_fails(
    places: dict[str, Path],
    root: Path,
    answer: str,
    settings: dict[str, Any],
    content: str,
    rule: str,
    told: list[str],
) -> None:
    items, degraded = await said(places, root, answer, **settings)
    expected = {(FACT, "passage"), (content, rule)}
    assert {(item.content, item.source.detail) for item in items} == expected
    assert degraded == told
