"""What a call of a model costs is what docs/models.md says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_memory.knowledge.facade.layers import Passage
from agent_memory.knowledge.items.by_model import portions, prompt_of
from agent_memory.knowledge.llm.port import choice_prompt
from agent_memory.knowledge.pages.by_model import prompt_of as wording_of
from agent_memory.knowledge.topics.page import PageClaim
from agent_memory.scratchpad import estimate_tokens

PAGE = Path(__file__).resolve().parents[3] / "docs" / "models.md"
WORDS = "The harbour of Oban opens at nine and its office sells the tickets for the islands until six. " * 100


def choosing(count: int, chars: int) -> str:
    return choice_prompt("when does the harbour open", [WORDS[:chars]] * count, 5)


def drawing(chars: int) -> str:
    (windows,) = portions([Passage("res-00000000000a", "res-00000000000a", WORDS[:chars], "document", "medium")])
    return prompt_of(windows, [])


def wording(count: int) -> str:
    return wording_of([PageClaim(WORDS[:100].strip())] * count)


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("choose among 2 items of 40 characters", choosing(2, 40)),
        ("choose among 50 items of 150 characters", choosing(50, 150)),
        ("choose among 50 items of 600 characters, the most", choosing(50, 600)),
        ("an answer that chooses 5", json.dumps([{"id": at, "confidence": 0.9} for at in range(1, 6)])),
        ("draw items from 600 characters", drawing(600)),
        ("draw items from 6,000 characters, the most without topics", drawing(6_000)),
        ("word a page of 3 claims of 100 characters", wording(3)),
        ("word a page of 60 claims of 100 characters, about the most of one call", wording(60)),
    ],
)
def test_the_page_says_what_a_call_costs(label: str, text: str) -> None:
    import bpe_openai  # reads every encoding it knows when it is imported

    tokens = len(bpe_openai.get_encoding("o200k_base").encode(text))
    assert f"| {label} | {tokens:,} | {estimate_tokens(text):,} |" in PAGE.read_text()
