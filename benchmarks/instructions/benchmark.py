"""Measure how well a model uses the memory with the instructions and schemas of the bundle.

    CHAT_URL=https://HOST/v1/chat/completions CHAT_MODEL=NAME CHAT_KEY=KEY python -m benchmarks.instructions

Sends each decision of `data/instructions.jsonl` once to a chat-completions endpoint: the instructions, what the
scratchpad shows, the conversation so far and the schemas of the offered tools. Compares the calls in the first answer
with the expected one.

A line of the set has `memories` (in the scratchpad), `beyond` (their number outside it), `turns` and `user` (the
conversation; without `user` the last tool answer is the newest), and `expect`: one call, or null for none. `arguments`
of a call have checks: `is` a value, `has` all of some texts, has `any` of some, `lacks` words. `*` is all arguments.
`allow` lists further tools whose call is no fault.

Prints harmful calls first: a write that was not expected, or a change of other memories than expected. `missed` is an
expected call that is absent or has wrong arguments, `needless` a search or list that was not expected.
"""

from __future__ import annotations

import json
import os
import re
import urllib.request
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from agent_memory.models import Memory
from agent_memory.scratchpad import render
from agent_memory.settings import OFFERED_TOOLS
from agent_memory.tools import ALL_TOOLS
from benchmarks.harness import build_parser, read_jsonl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Send = Callable[[dict[str, Any]], dict[str, Any]]

HERE: Final = Path(__file__).resolve().parent
DECISIONS: Final = HERE / "instructions.jsonl"
INSTRUCTIONS: Final = HERE.parents[1] / "context" / "memory.md"
CHANGES: Final = frozenset({"memory_update", "memory_forget", "memory_promote", "memory_activate"})
"""Tools that act on what exists: with wrong arguments they do harm."""
WRITES: Final = CHANGES | {"memory_store"}
_SYSTEM: Final = "You are a helpful assistant. Today is Friday, 2026-11-27.\n\n"
_SECONDS: Final = 120
"""For one answer of the endpoint."""

Verdict = Literal["harmful", "missed", "needless", "right call", "right no-call"]
VERDICTS: Final[tuple[Verdict, ...]] = ("harmful", "missed", "needless", "right call", "right no-call")


class ToolCall(NamedTuple):
    """One call in a model's answer; `arguments` is None if they are not a JSON object."""

    name: str
    arguments: dict[str, Any] | None


def main(argv: Sequence[str] | None = None, send: Send | None = None) -> int:
    """Ask the endpoint and print the report."""
    parser = build_parser("instructions", __doc__, "--json")
    parser.add_argument("--decisions", type=Path, default=DECISIONS, metavar="FILE.jsonl")
    parser.add_argument("--kind", help="only decisions whose id begins so, such as forget")
    parser.add_argument("--answers", type=Path, metavar="FILE.jsonl", help="writes each verdict and the calls")
    args = parser.parse_args(argv)
    if send is None:
        url, model = os.environ.get("CHAT_URL"), os.environ.get("CHAT_MODEL")
        if not url or not model:
            parser.error("no endpoint: set CHAT_URL and CHAT_MODEL, and CHAT_KEY if it needs a key")
        send = connect(url, model, os.environ.get("CHAT_KEY", ""))
    rows = [row for row in read_decisions(args.decisions) if row["id"].startswith(args.kind or "")]
    results = []
    for row in rows:
        calls = read_calls(send(build_request(row)))
        results.append({"id": row["id"], "verdict": judge(row, calls), "calls": [call._asdict() for call in calls]})
    if args.answers:
        lines = [json.dumps(result, ensure_ascii=False) for result in results]
        args.answers.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    report = summarize(results)
    print(json.dumps(report, ensure_ascii=False) if args.json else render_report(report))
    return 0


def read_decisions(path: Path = DECISIONS) -> list[dict[str, Any]]:
    """Return the decisions of a file."""
    return read_jsonl(path)


def connect(url: str, model: str, key: str) -> Send:
    """Return a function that posts a request to a chat-completions endpoint."""

    def send(body: dict[str, Any]) -> dict[str, Any]:
        content = json.dumps({"model": model, "temperature": 0, **body}).encode()
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        request = urllib.request.Request(url, content, headers)  # noqa: S310 - the user's own address
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
            return dict(json.load(answer))

    return send


# -- asking -----------------------------------------------------------------------------------------------------------


def build_request(row: dict[str, Any]) -> dict[str, Any]:
    """Return the messages and tools of one decision."""
    system = _SYSTEM + INSTRUCTIONS.read_text("utf-8")
    pad = [Memory.model_validate({**_as_fields(memory), "agent_id": "bob"}) for memory in row.get("memories", [])]
    block = render(pad, "bob", total=len(pad) + row["beyond"]).text
    messages = [{"role": "system", "content": system}, {"role": "user", "content": block}]
    for turn in row.get("turns", []):
        messages += _as_messages(turn, len(messages))
    if "user" in row:
        messages.append({"role": "user", "content": row["user"]})
    return {"messages": messages, "tools": offered_schemas()}


def offered_schemas() -> list[dict[str, Any]]:
    """Return the schemas of the tools that are offered by default, as the endpoint takes them."""
    tools = [kind(None) for kind in ALL_TOOLS if kind.name in OFFERED_TOOLS]  # type: ignore[arg-type]  # a schema needs no session
    parts = [{"name": tool.name, "description": tool.description, "parameters": tool.input_schema} for tool in tools]
    return [{"type": "function", "function": part} for part in parts]


def _as_fields(memory: dict[str, str]) -> dict[str, str]:
    return {"id": memory["id"], "content": memory["content"], "timestamp": f"{memory['date']}T12:00:00Z"}


def _as_messages(turn: dict[str, Any], number: int) -> list[dict[str, Any]]:
    if "call" not in turn:
        return [{"role": role, "content": text} for role, text in turn.items()]
    function = {"name": turn["call"]["tool"], "arguments": json.dumps(turn["call"]["arguments"], ensure_ascii=False)}
    call = {"id": f"call-{number}", "type": "function", "function": function}
    answer = json.dumps(turn["answer"], ensure_ascii=False)
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": answer},
    ]


# -- judging ----------------------------------------------------------------------------------------------------------


def read_calls(answer: dict[str, Any]) -> list[ToolCall]:
    """Return the tool calls of an endpoint's answer.

    Raises:
        ValueError: The answer has no message.
    """
    try:
        message = answer["choices"][0]["message"]
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"The endpoint answered without a message: {str(answer)[:300]}") from error
    return [_read_call(call["function"]) for call in message.get("tool_calls") or []]


def _read_call(function: dict[str, Any]) -> ToolCall:
    try:
        arguments = json.loads(function["arguments"] or "{}")
    except ValueError:
        arguments = None
    return ToolCall(function["name"], arguments if isinstance(arguments, dict) else None)


def judge(row: dict[str, Any], calls: Iterable[ToolCall]) -> Verdict:
    """Return the verdict on the calls that answer a decision."""
    expect, allowed = row["expect"], row.get("allow", ())
    own = [call for call in calls if call.name.startswith("memory_")]
    if expect is None:
        if any(call.name in WRITES and call.name not in allowed for call in own):
            return "harmful"
        return "needless" if any(call.name not in allowed for call in own) else "right no-call"
    names = [expect["tool"]] if isinstance(expect["tool"], str) else expect["tool"]
    right = [call for call in own if call.name in names and meets(call.arguments, expect["arguments"])]
    wrong = {call.name for call in own if call not in right and call.name not in allowed} & WRITES
    if wrong - {*names} or wrong & CHANGES:
        return "harmful"
    return "right call" if right else "missed"


def meets(arguments: dict[str, Any] | None, checks: dict[str, dict[str, Any]]) -> bool:
    """Return True if arguments pass all checks."""
    if arguments is None:
        return False
    values = {**arguments, "*": json.dumps(arguments, ensure_ascii=False)}
    return all(name in values and _passes(values[name], check) for name, check in checks.items())


def _passes(value: Any, check: dict[str, Any]) -> bool:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    folded = text.casefold()
    return (
        ("is" not in check or value == check["is"])
        and all(part.casefold() in folded for part in check.get("has", ()))
        and ("any" not in check or any(part.casefold() in folded for part in check["any"]))
        and not any(_has_word(text, word) for word in check.get("lacks", ()))
    )


def _has_word(text: str, word: str) -> bool:
    if not word.isascii():
        return word in text  # of a script without spaces
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


# -- reporting --------------------------------------------------------------------------------------------------------


def summarize(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the number of each verdict, together and by kind, and the ids of harmful ones."""
    kinds: dict[str, Counter[str]] = {}
    for result in results:
        kinds.setdefault(result["id"].rpartition("-")[0], Counter())[result["verdict"]] += 1
    together = sum(kinds.values(), Counter[str]())
    return {
        "decisions": len(results),
        "harmful_ids": [result["id"] for result in results if result["verdict"] == "harmful"],
        "together": {verdict: together[verdict] for verdict in VERDICTS},
        "kinds": {kind: {verdict: counts[verdict] for verdict in VERDICTS} for kind, counts in kinds.items()},
    }


def render_report(report: dict[str, Any]) -> str:
    """Return the report as text."""
    width = max([len("together"), *map(len, report["kinds"])])
    lines = [f"{report['decisions']} decisions. Harmful: {', '.join(report['harmful_ids']) or 'none'}."]
    lines.append("  ".join([" " * width, *VERDICTS]))
    for name, counts in [("together", report["together"]), *report["kinds"].items()]:
        cells = [str(counts[verdict]).rjust(len(verdict)) for verdict in VERDICTS]
        lines.append("  ".join([name.ljust(width), *cells]))
    return "\n".join(lines)
