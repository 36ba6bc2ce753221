"""How a model is asked: within a budget, once more for JSON that can be read; and no answer hangs on it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agent_memory.knowledge import Asking, ModelBudget
from agent_memory.knowledge.model import Chosen, Reply, read_rows
from agent_memory.scratchpad import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable


def scripted(*answers: str) -> tuple[Callable[[str], asyncio.Future[str]], list[str]]:
    prompts: list[str] = []

    def model(prompt: str) -> asyncio.Future[str]:
        prompts.append(prompt)
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        answer.set_result(answers[min(len(prompts), len(answers)) - 1])
        return answer

    return model, prompts


async def asked(asking: Asking, prompt: str = "numbers, please") -> Reply[list[int]]:
    def read(answer: str) -> list[int] | None:
        rows = read_rows(answer, Chosen)
        return None if rows is None else [each.id for each in rows[0]]

    return await asking.ask(prompt, read, "counted")


async def test_calls_beyond_the_budget_are_not_made_and_it_says_so() -> None:
    model, prompts = scripted('[{"id": 4}]')
    asking = Asking(model, budget=ModelBudget(max_calls=2))
    assert [(await asked(asking)).value for _ in range(3)] == [[4], [4], None]
    assert len(prompts) == asking.budget.calls == 2
    assert (await asked(asking)).problem == (
        "The language model was not asked: the limit of 2 calls is reached, so this was counted by rules."
    )


async def test_tokens_of_prompts_and_answers_are_counted_and_bounded() -> None:
    prompt, answer = "word " * 100, '[{"id": 4}]'
    model, prompts = scripted(answer)
    each = estimate_tokens(prompt) + estimate_tokens(answer)
    asking = Asking(model, budget=ModelBudget(max_tokens=2 * each))
    assert [(await asked(asking, prompt)).value for _ in range(3)] == [[4], [4], None]
    assert asking.budget.tokens == 2 * each
    assert len(prompts) == 2


async def test_a_prompt_that_is_too_long_is_not_sent() -> None:
    model, prompts = scripted("[]")
    asking = Asking(model, budget=ModelBudget(max_prompt_tokens=10))
    assert "one prompt may have 10 tokens" in ((await asked(asking, "word " * 100)).problem or "")
    assert (prompts, asking.budget.calls, asking.budget.tokens) == ([], 0, 0)


async def test_the_call_that_asks_again_is_counted_too() -> None:
    model, prompts = scripted("Four, I think.", '```json\n[{"id": 4}]\n```')
    asking = Asking(model)
    assert (await asked(asking)).value == [4]
    assert asking.budget.calls == len(prompts) == 2
    assert prompts[1].startswith(prompts[0])
    assert not asking.budget.failures


async def test_failures_are_counted_by_reason() -> None:
    model, _ = scripted("Four.")
    asking = Asking(model, budget=ModelBudget(max_calls=3))
    for _ in range(2):
        await asked(asking)
    assert dict(asking.budget.failures) == {
        "gave no answer that can be read": 1,
        "was not asked: the limit of 3 calls is reached": 1,
    }


async def test_an_answer_without_end_is_none() -> None:
    model, _ = scripted("[" + '{"id": 4},' * 50_000 + '{"id": 4}]')
    assert (await asked(Asking(model))).value is None


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ('[{"id": 1}, {"id": 2}]', ([1, 2], 0)),
        ('Sure:\n```json\n[{"id": 1}, {"no": 2}, 3]\n```', ([1], 2)),
        ("[]", ([], 0)),
        ('[{"id": 1}, {"id":', None),
        ('[{"no": 1}]', None),
        ("none", None),
        ("{}", None),
    ],
)
def test_rows_are_read_leniently(answer: str, found: tuple[list[int], int] | None) -> None:
    rows = read_rows(answer, Chosen)
    assert (None if rows is None else ([each.id for each in rows[0]], rows[1])) == found
