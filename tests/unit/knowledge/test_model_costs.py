"""What a call of a model costs is what docs/benchmarks.md says."""

from __future__ import annotations

from pathlib import Path

from agent_memory.knowledge.digest.model_digest import render_prompt
from agent_memory.knowledge.llm.language_model import build_choice_prompt
from agent_memory.language.prompt_text import estimate_tokens
from agent_memory.models import Memory
from tests.rows import check_rows

PAGE = Path(__file__).resolve().parents[3] / "docs" / "benchmarks.md"
WORDS = "The harbour of Oban opens at nine and its office sells the tickets for the islands until six. " * 100


def choosing(count: int, chars: int) -> str:
    return build_choice_prompt("when does the harbour open", [WORDS[:chars]] * count, 5)


def digesting(count: int, chars: int) -> str:
    return render_prompt([Memory(agent_id="bob", id=f"mem-{at:012}", content=WORDS[:chars]) for at in range(count)])


@check_rows(
    ("label", "text"),
    [
        ("choose among 50 items of 600 characters, the most", choosing(50, 600)),
        ("digest 4 passages of 1,200 characters, about the most of one call", digesting(4, 1_200)),
    ],
)
def test_page_has_the_cost_of_a_call(label: str, text: str) -> None:
    import bpe_openai  # reads every encoding it knows when it is imported

    tokens = len(bpe_openai.get_encoding("o200k_base").encode(text))
    assert f"| {label} | {tokens:,} | {estimate_tokens(text):,} |" in PAGE.read_text()
