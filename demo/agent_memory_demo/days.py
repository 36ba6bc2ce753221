"""What is said on the two days, and what must come of it."""

from __future__ import annotations

from dataclasses import dataclass

from agent_memory_demo.provider import Call, Say


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn: the user's words, the model's lines, and a remark for the reader."""

    prompt: str
    steps: tuple[Call | Say, ...]
    remark: str = ""


DAY_ONE = (
    Exchange(
        "Start as bob with memory enabled.",
        (Call("memory_activate", {"agent_id": "bob"}), Say("Memory is on. I am bob.")),
    ),
    Exchange(
        "Remember that I prefer dark mode in every tool.",
        (
            Call(
                "memory_store",
                {
                    "content": "The user prefers dark mode in every tool.",
                    "category": "preference",
                    "tags": ["ui", "dark-mode"],
                },
            ),
            Say("I will remember that."),
        ),
    ),
    Exchange(
        "For the ledger we use PostgreSQL, since we need transactions across tables. Keep that in mind.",
        (
            Call(
                "memory_store",
                {
                    "content": "PostgreSQL is the database of the ledger, because it needs transactions across tables.",
                    "category": "decision",
                    "tags": ["database", "ledger"],
                },
            ),
            Call("memory_search", {"query": "what do we store the ledger in"}),
            Call("memory_list_recent", {"limit": 5}),
            Say("Noted, and it is in my scratchpad."),
        ),
    ),
    Exchange(
        "We decided to deploy on Fridays only after the smoke tests are green.",
        (Say("Understood."),),
        "No tool was called: the capture hook recognised a decision and kept it.",
    ),
)

DAY_TWO = (
    Exchange(
        "Start as bob with memory enabled. Good morning!",
        (Call("memory_activate", {"agent_id": "bob"}), Say("Good morning. You like dark mode, I remember.")),
    ),
    Exchange(
        "Which database did we pick for the ledger, and why?",
        (
            Call("memory_search", {"query": "Which database did we pick for the ledger, and why?"}),
            Say("PostgreSQL, because the ledger needs transactions across tables."),
        ),
    ),
)
