"""A session of a group is answered from what belongs to that or to none, as the host or a setting says it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support import plan

if TYPE_CHECKING:
    from tests.unit.tool_memory_knowledge.conftest import Mount

FACT = "The salary of Ada is paid in May."


def bound(where: str, tenant: str) -> dict[str, Any]:
    """Return how a session of a tenant is mounted."""
    if where == "setting":
        return {"settings": {"tenant_id": tenant}}
    if where == "group":
        return {"settings": {"group": f"{tenant}:all"}}
    return {"config": plan(tenant_id=tenant)}


@pytest.mark.parametrize("where", ["setting", "group", "session"])
async def test_another_tenant_is_told_nothing(mounted: Mount, where: str) -> None:
    hers = await mounted(session_id="s-ada", **bound(where, "ada"))
    his = await mounted(session_id="s-bob", **bound(where, "bob"))
    assert (await hers["remember"].execute({"content": FACT, "category": "money_of_ada"})).success
    assert FACT in (await hers["recall"].execute({"query": "salary"})).output
    assert (await his["recall"].execute({"query": "salary"})).output == "No relevant memories found for: salary"
    assert "money_of_ada" in (await hers["list_categories"].execute({"limit": 9})).output
    assert (await his["list_categories"].execute({"limit": 9})).output == "Memory Categories (0):"
    page = await his["get_category"].execute({"name": "money_of_ada"})
    assert page.error is not None
    assert page.error["message"].endswith("Available categories: none")


async def test_sessions_of_one_group_share_what_they_give(mounted: Mount) -> None:
    one = await mounted({"group": "acme:support"}, session_id="s-1")
    other = await mounted({"group": "acme:support"}, session_id="s-2")
    await one["remember"].execute({"content": FACT})
    assert FACT in (await other["recall"].execute({"query": "salary"})).output


async def test_a_session_whose_group_cannot_be_said_is_told_so(mounted: Mount) -> None:
    free = await mounted(session_id="s-1")
    await free["remember"].execute({"content": FACT})
    tools = await mounted(session_id="s-2", config=plan(tenant_id="no tenant"))
    for name, args in (
        ("recall", {"query": "salary"}),
        ("remember", {"content": FACT}),
        ("list_categories", {"limit": 1}),
    ):
        answer = await tools[name].execute(args)
        assert answer.error is not None
        assert answer.error["code"] == "invalid_group"
