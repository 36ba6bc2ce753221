"""Measure wishes kept, findings shown again, and proposals in ordinary dialogues.

    python -m benchmarks.dialogues [--replay FILE] [--misses] [--json]

Each dialogue of `wishes.yaml` and `findings.yaml` is a real session with every module, with an agent and a memory of
its own. Tools are objects of the packages that a host mounts. `--replay` says the user's messages of a set of
benchmarks.capture in one session, for the count of proposals.

- wishes: share that is a memory or a waiting note with the user's words. `kept` and `proposed` are its two parts.
- findings: share that the briefing of the next session in the same project has. `instructions`: number of those that
  are shown there without the label, or in the scratchpad.
- proposals_per_100: texts that wait for the user's yes because they would act or may be pasted, and open proposals,
  per 100 messages of the user. `shell_proposals_per_100`: those of dialogues with commands. `notes_per_100`: all
  waiting notes.
"""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from agent_memory.memory.inbox_access import opened_inbox
from agent_memory.models.identifiers import RULE_CATEGORIES
from benchmarks.harness import build_parser, print_report, read_jsonl
from tests.hostile.attacked import Attacked

if TYPE_CHECKING:
    from agent_memory.models import Candidate

LABEL: Final = "(from tool output, unconfirmed)"
_PACKAGES: Final = {
    "bash": "amplifier_module_tool_bash",
    "read_file": "amplifier_module_tool_filesystem",
    "web_fetch": "amplifier_module_tool_web",
}
"""Packages of the host's tools, by name; another tool is of an unknown package."""
_WORKING_DIR: Final = "session.working_dir"


@dataclass
class DialogueTally:
    """Counts over dialogues; see the module's docstring."""

    wishes: int = 0
    kept: int = 0
    proposed: int = 0
    findings: int = 0
    shown: int = 0
    instructions: int = 0
    messages: int = 0
    proposals: int = 0
    notes: int = 0
    shell_messages: int = 0
    shell_proposals: int = 0
    misses: list[str] = field(default_factory=list)

    def figures(self) -> dict[str, float | int]:
        """Return the metrics."""
        return {
            "wishes": self.wishes,
            "kept": self.kept,
            "proposed": self.proposed,
            "wishes_share": round((self.kept + self.proposed) / max(1, self.wishes), 3),
            "findings": self.findings,
            "findings_share": round(self.shown / max(1, self.findings), 3),
            "instructions": self.instructions,
            "messages": self.messages,
            "proposals_per_100": round(100 * self.proposals / max(1, self.messages), 2),
            "shell_proposals_per_100": round(100 * self.shell_proposals / max(1, self.shell_messages), 2),
            "notes_per_100": round(100 * self.notes / max(1, self.messages), 2),
        }


async def begin_session(folder: Path, session_id: str) -> Attacked:
    """Return a session of a project in `folder`, with the host's tools mounted."""
    project = folder / "shop"
    (project / ".git").mkdir(parents=True, exist_ok=True)
    session = Attacked(folder / "memory", session_id)
    session.coordinator.register_capability(_WORKING_DIR, str(project))
    for name, package in _PACKAGES.items():
        tool = type("HostTool", (), {"__module__": package, "name": name})()
        await session.coordinator.mount("tools", tool, name=name)
    return await session.begin()


async def play_turns(session: Attacked, turns: list[dict[str, Any]]) -> int:
    """Play the turns of a dialogue; return the number of the user's messages."""
    has_open_turn, messages = False, 0
    for turn in turns:
        [(actor, content)] = turn.items()
        if actor == "user":
            if has_open_turn:
                await session.answer()
            await session.say(content)
            await session.shown()
            has_open_turn, messages = True, messages + 1
        elif actor == "assistant":
            await session.answer(content)
            has_open_turn = False
        else:
            await _call_tool(session, actor, content)
    if has_open_turn:
        await session.answer()
    return messages


async def _call_tool(session: Attacked, actor: str, content: Any) -> None:
    if actor == "web":
        await session.read("web_fetch", content, url="https://page.example")
    elif actor == "tool":
        await session.read(content["name"], content["result"])
    elif actor == "bash":
        result = {"stdout": content["result"], "stderr": "", "returncode": 0}
        await session.read("bash", result, command=content["command"])
    else:
        await session.read(actor, content["result"], file_path=content["path"])


async def list_waiting(session: Attacked) -> list[Candidate]:
    """Return the waiting notes of a session's agent."""
    async with opened_inbox(await session.service()) as inbox:
        return await inbox.waiting()


def needs_yes(note: Candidate) -> bool:
    """Return True if a note would act, or may be another author's."""
    return note.trust == "low" or (note.category in RULE_CATEGORIES and note.source.kind != "user")


async def measure_wishes(dialogue: dict[str, Any], tally: DialogueTally) -> None:
    """Play a dialogue with wishes and count them."""
    with tempfile.TemporaryDirectory(prefix="dialogues-", ignore_cleanup_errors=True) as folder:
        session = await begin_session(Path(folder), "s-1")
        try:
            messages = await play_turns(session, dialogue["turns"])
            await session.coordinator.hooks.emit("session:end", {})
            memories = [memory for memory in await session.memories() if not memory.is_item]
            notes = await list_waiting(session)
            count_waiting(session, notes, messages, tally, has_shell=any("bash" in turn for turn in dialogue["turns"]))
        finally:
            await session.end()
    for wish in dialogue["wishes"]:
        tally.wishes += 1
        if any(wish in memory.content.lower() and memory.source.kind == "user" for memory in memories):
            tally.kept += 1
        elif any(wish in note.content.lower() for note in notes):
            tally.proposed += 1
        else:
            tally.misses.append(f"{dialogue['name']}: {wish}")


def count_waiting(
    session: Attacked, notes: list[Candidate], messages: int, tally: DialogueTally, *, has_shell: bool
) -> None:
    """Count what waits for the user at the end of a session."""
    proposals = sum(map(needs_yes, notes)) + len(session.session.proposals.waiting)
    tally.messages += messages
    tally.notes += len(notes)
    tally.proposals += proposals
    tally.shell_messages += messages * has_shell
    tally.shell_proposals += proposals * has_shell


async def measure_finding(finding: dict[str, Any], tally: DialogueTally) -> None:
    """Let an agent store a finding, and read the briefing of the next session."""
    ran = {"command": finding["command"], "result": finding["result"]}
    with tempfile.TemporaryDirectory(prefix="dialogues-", ignore_cleanup_errors=True) as folder:
        session = await begin_session(Path(folder), "s-1")
        try:
            await session.say("please run it and see what is wrong")
            await _call_tool(session, "bash", ran)
            await session.tool("memory_store", content=finding["stores"], category=finding["category"])
            await session.answer()
            count_waiting(session, await list_waiting(session), 1, tally, has_shell=True)
        finally:
            await session.end()
        session = await begin_session(Path(folder), "s-2")
        try:
            await session.say(finding["asks"])
            lines = (await session.shown()).splitlines()
            await session.answer()
        finally:
            await session.end()
    count_finding(lines, finding, tally)


def count_finding(lines: list[str], finding: dict[str, Any], tally: DialogueTally) -> None:
    """Count a finding in the lines of a briefing; each line of it needs the label."""
    tally.findings += 1
    shown = [line for line in lines if finding["part"] in line.lower()]
    tally.shown += bool(shown)
    tally.instructions += any(LABEL not in line for line in shown)
    if not shown:
        tally.misses.append(f"finding: {finding['stores']}")


async def measure_replay(path: Path, tally: DialogueTally) -> None:
    """Say a set's messages of the user in one session, and count what waits."""
    texts = [line["text"] for line in read_jsonl(path) if line["source"] == "user"]
    with tempfile.TemporaryDirectory(prefix="dialogues-", ignore_cleanup_errors=True) as folder:
        session = await begin_session(Path(folder), "s-1")
        try:
            for text in texts:
                await play_turns(session, [{"user": text}])
                if session.session.lines.drain is not None:
                    await session.session.lines.drain()  # else the end of the session drops what still waits
            await session.coordinator.hooks.emit("session:end", {})
            count_waiting(session, await list_waiting(session), len(texts), tally, has_shell=False)
        finally:
            await session.end()


def load_dialogues(name: str) -> list[dict[str, Any]]:
    """Return the dialogues of a file next to this module."""
    rows: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name(name).read_text("utf-8"))
    return rows


async def run(replay: Path | None = None) -> DialogueTally:
    """Measure all dialogues, or the messages of a set alone."""
    tally = DialogueTally()
    if replay is not None:
        await measure_replay(replay, tally)
        return tally
    for dialogue in load_dialogues("wishes.yaml"):
        await measure_wishes(dialogue, tally)
    for finding in load_dialogues("findings.yaml"):
        await measure_finding(finding, tally)
    return tally


def main() -> None:
    """Run from the command line."""
    parser = build_parser("dialogues", __doc__, "--json")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="count proposals on the user's messages of a set")
    parser.add_argument("--misses", action="store_true", help="list each wish and finding that was missed")
    options = parser.parse_args()
    tally = asyncio.run(run(options.replay))
    figures = tally.figures()
    shown = [f"{name:20} {value:>8}" for name, value in figures.items()]
    print_report(figures, [*shown, *(tally.misses if options.misses else [])], as_json=options.json)


if __name__ == "__main__":
    main()
