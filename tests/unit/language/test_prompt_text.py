"""Token budgets of texts."""

from agent_memory import scratchpad
from agent_memory.language.prompt_text import estimate_tokens
from tests.rows import check_rows


@check_rows(("text", "tokens"), [("", 0), ("abc", 1), ("abcd", 2), ("é", 1), ("漢", 2), ("🙂", 2), ("aé漢", 4)])
def test_estimate_of_any_script_is_generous(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_estimate_at_its_earlier_path_is_the_same() -> None:
    assert scratchpad.estimate_tokens is estimate_tokens
