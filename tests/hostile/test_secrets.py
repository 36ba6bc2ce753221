"""Planted secrets: none reaches a file below the storage root or an event, whoever says it, however it is wrapped."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from amplifier_core.testing import MockContextManager, MockCoordinator

from agent_memory.redaction import SecretRedactor
from amplifier_module_hooks_memory_capture import mount

if TYPE_CHECKING:
    from pathlib import Path

EVENTS = ("memory:stored", "memory:captured", "memory:capture_skipped", "memory:degraded")
ALNUM = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA"

CANARIES = {
    "github": "gh" + "p_" + ALNUM + "Zz12",
    "openai": "sk" + "-proj-" + ALNUM + ALNUM,
    "slack": "xo" + "xb-123456789012-" + ALNUM,
    "aws": "AK" + "IA" + "IOSFODNN7EXAMPLQ",
    "google": "AI" + "za" + ALNUM + "abc",
    "jwt": "ey" + "J" + ALNUM + ".ey" + "J" + ALNUM + "." + ALNUM,
    "password": "Mango" + "#fest77",
    "card": "5412 7534" + " 8821 0093",
    "backup code": "8842-1190" + "-3307",
}
HINTS = {
    "password": "the password is ",
    "card": "the company card is ",
    "backup code": "the backup code is ",
}
FRAMES = [
    "Remember that the staging cluster lives in Frankfurt and {}.",
    "We decided to use the shared account for the build, {} for now.",
    "From now on use this for every deployment:\n\n```ini\nsetting = {}\n```",
    "TODO after the launch: rotate what we use on the build server, {}",
    "note for later: our org slug is kestrel-io, project edge-agent, {}",
    "{} - please remember it, we always need it in this project",
]


async def said(root: Path, text: str, source: str) -> list[str]:
    """Send `text` through the mounted hook; return what was emitted."""
    coordinator, context, emitted = MockCoordinator(), MockContextManager(), []

    async def listen(event: str, data: dict[str, Any]) -> None:
        emitted.append(json.dumps([event, data], ensure_ascii=False))

    for event in EVENTS:
        coordinator.hooks.register(event, listen, name="canary")
    await coordinator.mount("context", context)
    cleanup = await mount(coordinator, {"agent_id": "bob", "storage_root": str(root), "embedder": "none"})
    if source == "user":
        await coordinator.hooks.emit("prompt:submit", {"prompt": text})
    elif source == "assistant":
        await context.add_message({"role": "assistant", "content": f"As we agreed: {text}"})
    else:
        result = f"author: tess (member)\n--\nDecision: {text}"
        await coordinator.hooks.emit("tool:post", {"tool_name": "bash", "result": result})
    await coordinator.hooks.emit("orchestrator:complete", {"status": "success"})
    await coordinator.hooks.emit("session:end", {})
    await cleanup()
    return emitted


@pytest.mark.parametrize("source", ["user", "assistant", "tool"])
@pytest.mark.parametrize("canary", CANARIES)
async def test_a_planted_secret_is_in_no_byte_and_no_event(root: Path, canary: str, source: str) -> None:
    secret = CANARIES[canary]
    emitted = []
    for frame in FRAMES:
        emitted += await said(root, frame.format(HINTS.get(canary, "") + secret), source)

    assert emitted, "nothing was captured: the test would prove nothing"
    assert not [text for text in emitted if secret in text]
    files = contents(root)
    assert files
    assert not [name for name, content in files.items() if secret.encode() in content]


def contents(root: Path) -> dict[str, bytes]:
    """Return every file below `root`."""
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


SHORT = ["a", "A1", "eyJ", "eyJa.", "sk-", "password ", "password is ", "password:", '"', "://", "https://a:", "1234 "]
LONG = [
    "-----BEGIN RSA PRIVATE " + "KEY-----\n",
    "mysql -p",
    "パスワードは",
    "[redacted:password] password: ",
    "seed phrase: abc abc ",
]


@pytest.mark.parametrize("seed", SHORT + LONG)
def test_hostile_repetition_costs_linear_work_and_stays_idempotent(seed: str) -> None:
    """Ten times the text may cost thirty times the CPU, where quadratic work would cost a hundred."""
    redactor = SecretRedactor()
    redactor.redact("warm up, the password is x")
    costs = []
    for size in (2_000, 20_000):
        text = (seed * (size // len(seed) + 1))[:size]
        started = time.process_time()
        once = redactor.redact(text).text
        costs.append(time.process_time() - started)
        assert redactor.redact(once).text == once

    assert costs[1] <= 30 * max(costs[0], 0.01)
