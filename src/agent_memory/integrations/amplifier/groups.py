"""Whose a session's conversation is, where one host serves many: its group, `tenant:session`.

Hosts have no name of their own for a tenant. Like an agent's, it comes from, in this order: the capability `tenant_id`,
which an application registers for a session; `session.capabilities.tenant_id` of the configuration; a module's setting.
A group of its own in a module's settings goes before all of them.
"""

from __future__ import annotations

import re
from typing import Any, Final

from agent_memory.errors import ValidationError
from agent_memory.settings import TENANT

_TENANT: Final = re.compile(TENANT)
_SESSION: Final = re.compile(r"[^\s:\x00-\x1f\x7f]{1,128}")


class Belonging:
    """Whose the conversation of a root session is.

    Args:
        coordinator: The host's.
        root_session: Id of the root session.
    """

    def __init__(self, coordinator: Any, root_session: str) -> None:
        self._coordinator, self._root_session = coordinator, root_session
        self._tenants: set[str] = set()
        self._groups: set[str] = set()

    def say(self, tenant_id: str | None, group: str | None) -> None:
        """Note what the settings of a module say; None says nothing."""
        self._tenants |= {each for each in (tenant_id,) if each is not None}
        self._groups |= {each for each in (group,) if each is not None}

    def group(self) -> str:
        """Return the group of the conversation; empty where no tenant is named.

        Raises:
            ValidationError: What names the tenant, or the session, cannot be part of a group, or two modules say
                different things.
        """
        if len(self._groups) > 1 or len(self._tenants) > 1:
            raise _refused("The modules of this session do not say the same of whose it is")
        if self._groups:
            return next(iter(self._groups))
        named = (self._coordinator.get_capability("tenant_id"), _configured(self._coordinator), *self._tenants)
        tenant = next((each for each in named if each is not None), None)
        if tenant is None:
            return ""
        if not isinstance(tenant, str) or not _TENANT.fullmatch(tenant) or not _SESSION.fullmatch(self._root_session):
            raise _refused("The tenant of this session cannot be part of a group")
        return f"{tenant}:{self._root_session}"


def _refused(why: str) -> ValidationError:
    return ValidationError(
        f"{why}, so nothing of its conversation is taken in, and it sees what belongs to no group alone.",
        code="invalid_group",
        recovery="A tenant_id has 1 to 64 letters, digits, _ . @ or -, and a session's id no colon or white space; "
        "give all modules the same tenant_id or group.",
    )


def _configured(coordinator: Any) -> Any:
    found: Any = coordinator.config
    for key in ("session", "capabilities", "tenant_id"):
        found = found.get(key) if isinstance(found, dict) else None
    return found
