"""How a model is asked: within a budget, once more for JSON that can be read; and no answer hangs on it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_memory.knowledge import Asking, ModelBudget
from agent_memory.knowledge.llm.language_model import ChosenCandidate, ModelFailure, read_rows
from agent_memory.language.prompt_text import estimate_tokens
from tests.rows import check_rows

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


async def asked(asking: Asking, prompt: str = "numbers, please") -> tuple[list[int] | None, str]:
    """Return the numbers of the answer, or the sentence of the failure."""

    def read(answer: str) -> list[int] | None:
        rows = read_rows(answer, ChosenCandidate)
        return None if rows is None else [each.id for each in rows[0]]

    numbers = await asking.ask(prompt, read, "counted")
    return (None, numbers.sentence) if isinstance(numbers, ModelFailure) else (numbers, "")


async def test_calls_beyond_the_budget_are_not_made_and_it_says_so() -> None:
    model, prompts = scripted('[{"id": 4}]')
    asking = Asking(model, budget=ModelBudget(max_calls=2))
    assert [(await asked(asking))[0] for _ in range(3)] == [[4], [4], None]
    assert len(prompts) == asking.budget.calls == 2
    assert (await asked(asking))[1] == (
        "The language model was not asked: the limit of 2 calls is reached, so this was counted by rules."
    )


async def test_tokens_of_prompts_and_answers_are_counted_and_bounded() -> None:
    prompt, answer = "word " * 100, '[{"id": 4}]'
    model, prompts = scripted(answer)
    each = estimate_tokens(prompt) + estimate_tokens(answer)
    asking = Asking(model, budget=ModelBudget(max_tokens=2 * each))
    assert [(await asked(asking, prompt))[0] for _ in range(3)] == [[4], [4], None]
    assert asking.budget.tokens == 2 * each
    assert len(prompts) == 2


async def test_a_prompt_that_is_too_long_is_not_sent() -> None:
    model, prompts = scripted("[]")
    asking = Asking(model, budget=ModelBudget(max_prompt_tokens=10))
    assert "one prompt may have 10 tokens" in (await asked(asking, "word " * 100))[1]
    assert (prompts, asking.budget.calls, asking.budget.tokens) == ([], 0, 0)


async def test_the_call_that_asks_again_is_counted_too() -> None:
    model, prompts = scripted("Four, I think.", '```json\n[{"id": 4}]\n```')
    asking = Asking(model)
    assert (await asked(asking))[0] == [4]
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


class Broken:
    """A model that is out of order until it is mended."""

    def __init__(self) -> None:
        self.calls, self.is_mended = 0, False

    async def __call__(self, _: str) -> str:
        self.calls += 1
        if not self.is_mended:
            raise OSError
        return '[{"id": 4}]'


async def test_a_model_that_is_out_of_order_is_left_alone_for_a_while_and_then_asked_again() -> None:
    time, model = [0.0], Broken()
    asking = Asking(model, retries=0, budget=ModelBudget(max_silent=2, rest=60, now=lambda: time[0]))
    told = [(await asked(asking))[1] for _ in range(4)]
    assert model.calls == 2
    assert told[:2] == ["The language model did not answer, so this was counted by rules."] * 2
    why = "was not asked: it gave no answer 2 times in a row, and is left alone for a while"
    assert told[2:] == [f"The language model {why}, so this was counted by rules."] * 2
    time[0] = 60.0
    await asked(asking)
    assert (await asked(asking))[0] is None
    assert model.calls == 3, "one attempt tells that it is still out of order"
    time[0], model.is_mended = 120.0, True
    assert (await asked(asking))[0] == [4]
    model.is_mended = False
    await asked(asking)
    assert "did not answer" in (await asked(asking))[1], "an answer begins the count anew"


async def test_no_attempt_is_made_after_the_last_that_may_be() -> None:
    async def pause(_: float) -> None:
        pass

    model = Broken()
    asking = Asking(model, retries=5, sleep=pause, budget=ModelBudget(max_silent=3))
    assert "did not answer" in (await asked(asking))[1]
    assert (model.calls, dict(asking.budget.failures)) == (3, {"did not answer": 1})


async def test_an_answer_without_end_is_none() -> None:
    model, _ = scripted("[" + '{"id": 4},' * 50_000 + '{"id": 4}]')
    assert (await asked(Asking(model)))[0] is None


@check_rows(
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
    rows = read_rows(answer, ChosenCandidate)
    assert (None if rows is None else ([each.id for each in rows[0]], rows[1])) == found
