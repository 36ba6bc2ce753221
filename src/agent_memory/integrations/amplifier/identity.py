"""Who the agent of a session is. Reads the host's configuration; decides nothing else.

A root session's agent comes, in this order, from: an activation (in this session, or remembered from before a resume),
the capability `agent_identity`, `session.capabilities.agent_identity` of the configuration, a module's `agent_id`; else
it is `DEFAULT_AGENT`. A child session has its root's agent and nothing else: hosts label children with the name of the
*delegate*, which does not identify the agent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_memory.memory.consent_state import ConsentRule, ConsentState, read_rule
from agent_memory.models import check_agent_id

if TYPE_CHECKING:
    from agent_memory.memory.consent_modes import Mode

MEMORY_ASSISTANT: Final = "memory-assistant"
_ACTIVATED: Final = "agent_memory_activated"
_WHERE: Final = "session.capabilities.memory"


@dataclass(frozen=True, slots=True)
class Configured:
    """Agent and consent of a session."""

    agent_id: str | None = None
    consent: ConsentState = field(default_factory=ConsentState)
    is_default: bool = False
    """True if no agent was named."""

    @property
    def enabled(self) -> bool:
        """True while memory is on."""
        return self.consent.is_enabled

    @property
    def mode(self) -> Mode:
        """The mode where neither a project nor a category has its own."""
        return self.consent.get_mode()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Settings that were not understood."""
        return self.consent.warnings

    def may_listen(self, project: str) -> bool:
        """Return True if conversations in a project may be kept whole unasked."""
        return self.enabled and self.agent_id is not None and self.consent.get_mode(project=project) == "autonomous"


def configured(coordinator: Any, module_agent_id: str | None) -> Configured:
    """Read the identity a session was configured with.

    Raises:
        ValidationError: The configured name cannot name an agent.
    """
    name = next(filter(None, _given(coordinator, module_agent_id)), None)
    return Configured(check_agent_id(name) if name else None, ConsentState(read_host_rules(coordinator)))


def named(coordinator: Any, module_agent_id: str | None) -> list[str]:
    """Return every agent that a session was given, its own activation included."""
    given = (*_given(coordinator, module_agent_id), activation(coordinator))
    return [name for name in given if isinstance(name, str)]


def _given(coordinator: Any, module_agent_id: str | None) -> tuple[Any, ...]:
    configured = _capabilities(coordinator).get("agent_identity")
    return coordinator.get_capability("agent_identity"), configured, module_agent_id


def read_host_rules(coordinator: Any) -> tuple[ConsentRule, ...]:
    """Return the rule in `session.capabilities.memory`, if it is there."""
    capabilities = _capabilities(coordinator)
    return (read_rule(capabilities["memory"], _WHERE),) if "memory" in capabilities else ()


def write_activation(coordinator: Any, agent_id: str | None) -> None:
    """Note this session's agent where children, in this and in other processes, inherit it from; None withdraws it.

    The host's configuration is one object for all sessions made from one prepared bundle, and children get a copy of
    it. So the note is kept under the session's own id: writing the plain `agent_identity` would hand the agent to
    every later session of the process.
    """
    session = coordinator.config.setdefault("session", {})
    capabilities = session.setdefault("capabilities", {})
    if not isinstance(capabilities, dict):
        return
    activated = {**_activations(coordinator), coordinator.session_id: agent_id}
    capabilities[_ACTIVATED] = {key: value for key, value in activated.items() if value is not None}
    if agent_id is not None:
        coordinator.register_capability("agent_identity", agent_id)


def activation(coordinator: Any) -> str | None:
    """Return the agent that this session, or the parent it was spawned from, was activated with; None if neither."""
    activated = _activations(coordinator)
    return activated.get(coordinator.session_id) or activated.get(coordinator.parent_id or "")


def delegate_name(coordinator: Any) -> str:
    """Return the name a child session runs under, e.g. `agent-memory:memory-assistant`; empty if it has none."""
    name = _section(coordinator.config, "session", "metadata").get("agent_name")
    return str(name or coordinator.session_id.rpartition("_")[2])


def is_memory_assistant(coordinator: Any) -> bool:
    """Return True if this child session is the memory-assistant."""
    return bool(re.search(rf"(?:^|[:_-]){MEMORY_ASSISTANT}$", delegate_name(coordinator)))


def withdraw_assistant(coordinator: Any) -> None:
    """Take the memory-assistant off the agents that this session may delegate to: a list that each request carries."""
    agents = _section(coordinator.config, "agents")
    for name in [name for name in agents if re.search(rf"(?:^|:){MEMORY_ASSISTANT}$", str(name))]:
        del agents[name]


@dataclass(frozen=True, slots=True)
class Activated:
    """What an activation came to: the agent as it is spelled on disk, the one before, whether it has no memory yet.

    `known` are the agents there were before; it is empty if this one was active already.
    """

    agent_id: str
    previous: str | None = None
    is_new: bool = False
    known: tuple[str, ...] = ()


def _capabilities(coordinator: Any) -> dict[str, Any]:
    return _section(coordinator.config, "session", "capabilities")


def _activations(coordinator: Any) -> dict[str, str]:
    return _section(_capabilities(coordinator), _ACTIVATED)


def _section(config: Any, *path: str) -> dict[str, Any]:
    """Return a part of the configuration, itself and not a copy; an empty one if there is none, or no mapping."""
    for key in path:
        config = config.get(key) if isinstance(config, dict) else None
    return config if isinstance(config, dict) else {}
