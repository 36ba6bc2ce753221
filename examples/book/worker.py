"""One of the processes: takes what can run, and has a session of amplifier-core do it."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

from amplifier_core import AmplifierSession, ToolResult
from amplifier_core.message_models import ChatRequest, ChatResponse, TextBlock, ToolCall
from amplifier_core.models import ProviderInfo

from agent_memory.workspace import Workspace
from agent_memory_demo.__main__ import end
from examples.book.agents import AGENTS, Call

if TYPE_CHECKING:
    from examples.book.agents import Model

STEP_TOOLS: Final = ("claim_step", "finish_step", "fail_step")
TAKEN: Final = "Somebody else took it."
_PAUSE: Final = 0.05
_SVG: Final = "http://www.w3.org/2000/svg"


class ScriptedModel:
    """A provider whose answers come from a generator: real requests and answers, no network.

    Args:
        step: The step to claim.
        model: What is done once it is claimed.
    """

    name = "scripted"

    def __init__(self, step: str, model: Model) -> None:
        self._lines = self._whole(step, model)
        self._calls = 0

    @staticmethod
    def _whole(step: str, model: Model) -> Model:
        claimed = yield Call("claim_step", {"step": step})
        if claimed.get("status") != "claimed":
            return TAKEN
        said, has_failed, answer = "", False, {}
        try:
            call = next(model)
            while True:
                has_failed = has_failed or call.tool == "fail_step"
                answer = yield call
                if "refused" in answer:
                    raise RuntimeError(f"{step}, {call.tool}: {answer['refused']}")
                call = model.send(answer)
        except StopIteration as ended:
            said = str(ended.value)
        if has_failed:
            return f"{step} failed: {said}"
        finished = yield Call("finish_step", {"step": step})
        return f"{step}: {said}" if finished.get("status") == "finished" else f"{step} NOT finished: {finished}"

    def get_info(self) -> ProviderInfo:
        """Describe a model with a large window."""
        return ProviderInfo(id=self.name, display_name="Scripted", defaults={"context_window": 200_000})

    async def list_models(self) -> list[Any]:
        """Return nothing: there is no model."""
        return []

    def parse_tool_calls(self, response: ChatResponse) -> list[ToolCall]:
        """Return the calls of a response."""
        return list(response.tool_calls or [])

    async def complete(self, request: ChatRequest, **_: Any) -> ChatResponse:
        """Go on with what the last tool answered."""
        try:
            call = self._lines.send(_answer(request.messages[-1].content)) if self._calls else next(self._lines)
        except StopIteration as ended:
            return ChatResponse(content=[TextBlock(text=str(ended.value))])
        self._calls += 1
        calls = [ToolCall(id=f"call-{self._calls}", name=call.tool, arguments=call.arguments)]
        return ChatResponse(content=[TextBlock(text="")], tool_calls=calls)


def _answer(content: Any) -> dict[str, Any]:
    text = content if isinstance(content, str) else "".join(getattr(block, "text", "") for block in content)
    try:
        value = json.loads(text)
    except ValueError:
        return {"refused": text}
    return dict(value)


class Draw:
    """The tool of the diagram designer: boxes and arrows as an SVG file of the workspace."""

    name = "draw"
    description = "Draw steps as boxes with arrows between them; answers with the path of the SVG file."

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def input_schema(self) -> dict[str, Any]:
        """Return what it takes."""
        steps = {"type": "array", "items": {"type": "string"}}
        properties = {"name": {"type": "string"}, "title": {"type": "string"}, "steps": steps}
        return {"type": "object", "properties": properties, "required": ["name", "title", "steps"]}

    async def execute(self, given: dict[str, Any]) -> ToolResult:
        """Write the file."""
        path = Path("diagrams") / f"{given['name']}.svg"
        (self._folder / path).parent.mkdir(exist_ok=True)
        (self._folder / path).write_text(drawn(given["title"], given["steps"]), encoding="utf-8")
        return ToolResult(success=True, output={"file_path": str(path)})


def drawn(title: str, steps: list[str]) -> str:
    """Return boxes with arrows between them as SVG; sizes are in pixels."""
    wide, high, gap = 150, 56, 50
    width = len(steps) * (wide + gap) + gap
    ET.register_namespace("", _SVG)
    root = ET.Element(f"{{{_SVG}}}svg", {"viewBox": f"0 0 {width} 170", "font-family": "sans-serif", "role": "img"})
    ET.SubElement(root, f"{{{_SVG}}}title").text = title
    head = {"x": str(width // 2), "y": "34", "text-anchor": "middle", "font-size": "20", "font-weight": "bold"}
    ET.SubElement(root, f"{{{_SVG}}}text", head).text = title
    for number, step in enumerate(steps):
        left = gap + number * (wide + gap)
        box = {"x": str(left), "y": "70", "width": str(wide), "height": str(high), "rx": "8"}
        ET.SubElement(root, f"{{{_SVG}}}rect", {**box, "fill": "#eef3f8", "stroke": "#33526e", "stroke-width": "2"})
        label = {"x": str(left + wide // 2), "y": "104", "text-anchor": "middle", "font-size": "16"}
        ET.SubElement(root, f"{{{_SVG}}}text", label).text = step
        if number:
            points = f"{left - gap + 6},98 {left - 14},98 {left - 14},92 {left - 4},98 {left - 14},104 {left - 14},98"
            ET.SubElement(root, f"{{{_SVG}}}polyline", {"points": points, "fill": "#33526e", "stroke": "#33526e"})
    return ET.tostring(root, encoding="unicode") + "\n"


async def do(folder: Path, step: str, agent: str, chapter: int) -> str:
    """Have one session do one step; return what its model says at the end."""
    offered = [*STEP_TOOLS, *AGENTS[agent].tools]
    tools = {"module": "tool-memory-workspace", "config": {"workspace": str(folder), "agent": agent, "tools": offered}}
    session = AmplifierSession(
        {
            "session": {
                "orchestrator": {"module": "loop-demo"},
                "context": {"module": "context-memory-scratchpad"},
            },
            "providers": [{"module": "provider-demo"}],
            "tools": [tools],
        }
    )
    await session.initialize()
    try:
        model = ScriptedModel(step, AGENTS[agent].model(chapter))
        await session.coordinator.unmount("providers", "demo")
        await session.coordinator.mount("providers", model, name=model.name)
        if agent == "diagram_designer":
            await session.coordinator.mount("tools", Draw(folder), name="draw")
        return str(await session.execute(f"Do the step {step}."))
    finally:
        await session.cleanup()


async def work(folder: Path, number: int) -> None:
    """Do what can run until all is done: the driver. Without this library it is five lines of a shell."""
    workspace = Workspace.open(folder)
    while any(step.status != "done" for step in workspace.steps.all()):
        ready = workspace.next_steps()
        if not ready:
            await asyncio.sleep(_PAUSE)
            continue
        step = ready[number % len(ready)]
        begun = time.perf_counter()
        said = await do(folder, step.name, step.agent, step.key or 0)
        if said != TAKEN:
            print(f"  process {number}  {said}  ({time.perf_counter() - begun:.1f} s)", flush=True)
    workspace.close()


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1]), int(sys.argv[2])))
    end(0)
