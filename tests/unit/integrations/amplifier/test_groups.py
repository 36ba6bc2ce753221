"""Whose a conversation is, by what the host and the configuration say, and the same in all sessions of one root."""

from __future__ import annotations

from typing import Any

from agent_memory.errors import ValidationError
from agent_memory.integrations.amplifier import MemorySession
from tests.rows import check_rows
from tests.support import coordinator_of, plan, raises


def session_of(session_id: str = "root-1", parent_id: str | None = None, tenant: Any = None) -> MemorySession:
    return MemorySession.of(coordinator_of(session_id, parent_id=parent_id, config=plan(tenant_id=tenant)))


@check_rows(
    ("capability", "configured", "setting", "group"),
    [
        (None, None, None, ""),
        (None, None, "ann", "ann:root-1"),
        (None, "bea", "ann", "bea:root-1"),
        ("cleo", "bea", "ann", "cleo:root-1"),
        ("me@example.org", None, None, "me@example.org:root-1"),
    ],
)
async def test_what_is_said_of_the_session_goes_before_what_is_said_of_all(
    capability: str | None, configured: str | None, setting: str | None, group: str
) -> None:
    coordinator = coordinator_of("root-1", config=plan(tenant_id=configured))
    coordinator.register_capability("tenant_id", capability)
    session = MemorySession.of(coordinator)
    session.group_settings.add_settings(setting, None)
    assert session.group() == group
    await session.release()


async def test_tenant_of_a_sub_session_ends_the_default_agent() -> None:
    root = session_of()
    assert root.identity().agent_id == "me"
    child = session_of("child-1", "root-1")
    child.group_settings.add_settings("ann", None)
    assert (root.identity().agent_id, child.identity().agent_id) == (None, None)
    await child.release()
    await root.release()


async def test_a_sub_session_has_the_group_of_its_root() -> None:
    root = session_of(tenant="ann")
    child = session_of("child-1", "root-1")
    assert child.group() == "ann:root-1"
    await child.release()
    await root.release()


@check_rows("tenant", ["", "a:b", "a b", ":", "x" * 65, 7, ["ann"], "\n", False])
async def test_a_tenant_that_cannot_be_understood_is_no_tenant_but_an_error(tenant: Any) -> None:
    session = session_of(tenant=tenant)
    with raises(ValidationError, "invalid_group"):
        session.group()
    await session.release()


@check_rows("session_id", ["a:b", "a b", "x" * 129])
async def test_a_session_whose_id_cannot_be_part_of_a_group_has_none_with_a_tenant(session_id: str) -> None:
    session = session_of(session_id, tenant="ann")
    with raises(ValidationError, "invalid_group"):
        session.group()
    await session.release()
