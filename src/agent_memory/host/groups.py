"""Whose a session's conversation is, where one host serves many: its group, `tenant:session`.

Hosts have no name of their own for a tenant. Like an agent's, it comes from, in this order: the capability `tenant_id`,
which an application registers for a session; `session.capabilities.tenant_id` of the configuration; a module's setting.
"""

from __future__ import annotations

import re
from typing import Any, Final

from agent_memory.errors import ValidationError
from agent_memory.knowledge.tool_settings import TENANT

_TENANT: Final = re.compile(TENANT)
_SESSION: Final = re.compile(r"[^\s:\x00-\x1f\x7f]{1,128}")


def group_of(coordinator: Any, root_session: str, own: str | None = None) -> str:
    """Return the group of a session and its children; empty where no tenant is named.

    Args:
        coordinator: The host's.
        root_session: Id of the root session.
        own: What a module's setting says.

    Raises:
        ValidationError: What names the tenant, or the session, cannot be part of a group.
    """
    named = (coordinator.get_capability("tenant_id"), _configured(coordinator), own)
    tenant = next((each for each in named if each is not None), None)
    if tenant is None:
        return ""
    if not isinstance(tenant, str) or not _TENANT.fullmatch(tenant) or not _SESSION.fullmatch(root_session):
        raise ValidationError(
            "The tenant of this session cannot be part of a group, so nothing of its conversation is taken in.",
            code="invalid_group",
            recovery="A tenant_id has 1 to 64 letters, digits, _ . @ or -, and a session's id no colon or white space.",
        )
    return f"{tenant}:{root_session}"


def _configured(coordinator: Any) -> Any:
    found: Any = coordinator.config
    for key in ("session", "capabilities", "tenant_id"):
        found = found.get(key) if isinstance(found, dict) else None
    return found
