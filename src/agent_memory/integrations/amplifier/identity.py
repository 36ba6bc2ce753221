"""Agent, group, project and consent of a session, by the host's configuration.

A root session's agent comes, in this order, from: an activation (in this session, or noted before a resume), the
capability `agent_identity`, `session.capabilities.agent_identity` of the configuration, the setting `agent_id` of a
module; else it is `DEFAULT_AGENT`. A child session has its root's agent: hosts label children with the name of the
delegate, which does not identify the agent.
"""

from __future__ import annotations

import asyncio
import difflib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.capture.user_requests import find_storing_request
from agent_memory.errors import AgentMemoryError, IdentityError, ValidationError
from agent_memory.files.names import CONSENT
from agent_memory.memory.consent import (
    MODULES,
    SPOKEN,
    SWITCHES,
    ConsentFiles,
    ConsentModes,
    ConsentRule,
    ConsentState,
    Mode,
    find_own_folders,
    limits_in,
    read_module_rules,
    read_rule,
)
from agent_memory.models import check_agent_id
from agent_memory.models.identifiers import DEFAULT_AGENT
from agent_memory.settings import TENANT, ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from agent_memory.settings import Settings

MEMORY_ASSISTANT: Final = "memory-assistant"
WORKING_DIR: Final = "session.working_dir"
"""Capability of the host: the folder that a session works in."""
_ACTIVATED: Final = "agent_memory_activated"
_CAPABILITIES: Final = ("session", "capabilities")
_TENANT: Final = re.compile(TENANT)
_SESSION: Final = re.compile(r"[^\s:\x00-\x1f\x7f]{1,128}")


@dataclass(frozen=True, slots=True)
class SessionIdentity:
    """Agent and consent of a session.

    Attributes:
        agent_id: Name of the agent, or None.
        consent: Consent by all sources.
        is_default: True if no agent was named.
    """

    agent_id: str | None = None
    consent: ConsentState = field(default_factory=ConsentState)
    is_default: bool = False

    @property
    def enabled(self) -> bool:
        """True while memory is on."""
        return self.consent.is_enabled

    @property
    def mode(self) -> Mode:
        """Mode where neither a project nor a category has its own."""
        return self.consent.get_mode()

    def may_listen(self, project: str) -> bool:
        """Return True if conversations in a project may be kept whole."""
        return self.enabled and self.agent_id is not None and self.consent.get_mode(project=project) == "autonomous"


@dataclass(frozen=True, slots=True)
class AgentActivation:
    """Outcome of an activation.

    Attributes:
        agent_id: Name of the agent, as its folder spells it.
        previous: Name of the agent before, or None.
        is_new: True if the agent has no memories yet.
        known: Names of the agents before; empty if this one was active already.
    """

    agent_id: str
    previous: str | None = None
    is_new: bool = False
    known: tuple[str, ...] = ()


def find_agent_name(coordinator: Any, setting: str | None) -> str | None:
    """Return the agent that a session is configured with, or None.

    Args:
        coordinator: Coordinator of the host.
        setting: Setting `agent_id` of the modules.

    Raises:
        ValidationError: The configured name cannot name an agent.
    """
    name = next(filter(None, _list_sources(coordinator, setting)), None)
    return check_agent_id(name) if name else None


def list_agent_names(coordinator: Any, setting: str | None) -> list[str]:
    """Return every agent that a session was given, its own activation included."""
    names = (*_list_sources(coordinator, setting), get_activation(coordinator))
    return [name for name in names if isinstance(name, str)]


def _list_sources(coordinator: Any, setting: str | None) -> tuple[Any, ...]:
    configured = _get_section(coordinator.config, *_CAPABILITIES).get("agent_identity")
    return coordinator.get_capability("agent_identity"), configured, setting


def read_host_rules(coordinator: Any) -> tuple[ConsentRule, ...]:
    """Return the consent rule in the host's configuration, if it has one."""
    capabilities = _get_section(coordinator.config, *_CAPABILITIES)
    return (read_rule(capabilities["memory"], "session.capabilities.memory"),) if "memory" in capabilities else ()


def write_activation(coordinator: Any, agent_id: str | None) -> None:
    """Note this session's agent for its children; None removes the note.

    Children may be in other processes, which get a copy of the host's configuration. Here it is one object for all
    sessions of one prepared bundle, so the note is under the session's own ID: a plain `agent_identity` would hand the
    agent to every later session.
    """
    session = coordinator.config.setdefault("session", {})
    capabilities = session.setdefault("capabilities", {})
    if not isinstance(capabilities, dict):
        return
    activated = {**_get_section(capabilities, _ACTIVATED), coordinator.session_id: agent_id}
    capabilities[_ACTIVATED] = {key: value for key, value in activated.items() if value is not None}
    if agent_id is not None:
        coordinator.register_capability("agent_identity", agent_id)


def get_activation(coordinator: Any) -> str | None:
    """Return the activated agent of this session or its parent, or None."""
    activated = _get_section(coordinator.config, *_CAPABILITIES, _ACTIVATED)
    return activated.get(coordinator.session_id) or activated.get(coordinator.parent_id or "")


def get_delegate_name(coordinator: Any) -> str:
    """Return the name of a child session, e.g. `agent-memory:memory-assistant`."""
    name = _get_section(coordinator.config, "session", "metadata").get("agent_name")
    return str(name or coordinator.session_id.rpartition("_")[2])


def is_memory_assistant(coordinator: Any) -> bool:
    """Return True if this child session is the memory-assistant."""
    return bool(re.search(rf"(?:^|[:_-]){MEMORY_ASSISTANT}$", get_delegate_name(coordinator)))


def withdraw_assistant(coordinator: Any) -> None:
    """Remove the memory-assistant from the agents that each request lists."""
    agents = _get_section(coordinator.config, "agents")
    for name in [name for name in agents if re.search(rf"(?:^|:){MEMORY_ASSISTANT}$", str(name))]:
        del agents[name]


class SessionGroup:
    """Group of a root session's conversation, `tenant:session`, for hosts with many users.

    Hosts have no name for a tenant. It comes, in this order, from: the capability `tenant_id`,
    `session.capabilities.tenant_id` of the configuration, the setting of a module. A group in a module's settings goes
    before all of them.

    Args:
        coordinator: Coordinator of the host.
        root_id: ID of the root session.

    Attributes:
        tenants: Tenants that the settings of modules name.
        groups: Groups that they name.
    """

    def __init__(self, coordinator: Any, root_id: str) -> None:
        self._coordinator, self._root_id = coordinator, root_id
        self.tenants: frozenset[str] = frozenset()
        self.groups: frozenset[str] = frozenset()

    def add_settings(self, tenant_id: str | None, group: str | None) -> None:
        """Note the settings of a module; None sets nothing."""
        self.tenants |= {tenant_id} if tenant_id is not None else set()
        self.groups |= {group} if group is not None else set()

    def get_name(self) -> str:
        """Return the group, or an empty text without a tenant.

        Raises:
            ValidationError: The tenant or the session's ID cannot be part of a group, or two modules differ.
        """
        if len(self.groups) > 1 or len(self.tenants) > 1:
            raise _build_group_error("The modules of this session name different groups")
        if self.groups:
            return next(iter(self.groups))
        configured = _get_section(self._coordinator.config, *_CAPABILITIES).get("tenant_id")
        names = (self._coordinator.get_capability("tenant_id"), configured, *self.tenants)
        tenant = next((name for name in names if name is not None), None)
        if tenant is None:
            return ""
        if not isinstance(tenant, str) or not _TENANT.fullmatch(tenant) or not _SESSION.fullmatch(self._root_id):
            raise _build_group_error("The tenant of this session cannot be part of a group")
        return f"{tenant}:{self._root_id}"


def find_working_folder(coordinator: Any) -> Path | None:
    """Return the working folder of a session, or None."""
    folder = coordinator.get_capability(WORKING_DIR)
    return Path(folder) if isinstance(folder, str | Path) and str(folder) else None


def _get_section(config: Any, *path: str) -> dict[str, Any]:
    """Return a mapping in the configuration itself, else an empty one."""
    for key in path:
        config = config.get(key) if isinstance(config, dict) else None
    return config if isinstance(config, dict) else {}


def build_off_error(identity: SessionIdentity) -> IdentityError:
    """Build the error for memory that is off."""
    if identity.enabled:
        return IdentityError("Memory is off in this session: no agent is active.")
    source = identity.consent.decided_by()
    how = (
        "Run `agent-memory consent on`." if CONSENT in source else "Set enabled to true there and start a new session."
    )
    return IdentityError(
        " ".join([f"Memory is off in this session: it is switched off by {source}.", *identity.consent.warnings]),
        code="switched_off",
        recovery=f"{how} Nothing said in this session switches memory on.",
    )


def build_request_error(name: str, identity: SessionIdentity, *, has_user: bool) -> IdentityError:
    """Build the error for an activation without the user's request.

    Args:
        name: Agent to activate.
        identity: Identity of the session now.
        has_user: True if the session reported a prompt.
    """
    active = f"The memory of {identity.agent_id} is active" if identity.agent_id else "No agent is active"
    headless = (
        " Where there is no user to ask, set agent_id in a module's configuration, or agent_identity in the session "
        "section of a bundle."
    )
    return IdentityError(
        f"{active}, and the user has not asked for {name} in words of their own in this turn.",
        code="needs_user",
        recovery=f"Ask the user to say: start as {name} with memory enabled.{'' if has_user else headless}",
    )


def describe_ineffective(agent_id: str | None, root_names: Collection[str], delegate: str) -> str | None:
    """Return a warning if a sub-agent names another agent than its root."""
    if not agent_id or agent_id.lower() in {name.lower() for name in root_names}:
        return None
    return (
        f"The sub-agent {delegate[:80]!r} is configured with the agent {agent_id!r}, which has no effect: a "
        "sub-session has the memory of the session that started it."
    )


def _build_group_error(reason: str) -> ValidationError:
    return ValidationError(
        f"{reason}, so nothing of its conversation is taken in, and it sees what belongs to no group alone.",
        code="invalid_group",
        recovery="A tenant_id has 1 to 64 letters, digits, _ . @ or -, and a session's id no colon or white space; "
        "give all modules the same tenant_id or group.",
    )


_MIN_SIMILARITY: Final = 0.8
"""Unknown keys from this similarity to a limit are misspelt: `enable`, `modes`."""
_KNOWN_KEYS: Final = frozenset({*SWITCHES, "model"})
"""Keys that are not misspelt; `model` is a setting of other modules."""
_SECTIONS: Final = ("tools", "hooks")
"""Sections of the host's plan that list our modules."""


class SessionConsent:
    """Consent of one session, or of one sub-session.

    Args:
        coordinator: Coordinator of the host.
        root: Consent of the root session, if this process has it.
    """

    def __init__(self, coordinator: Any, root: SessionConsent | None = None) -> None:
        self._coordinator, self._root, self._files = coordinator, root, ConsentFiles()
        self._blocks: dict[str, dict[str, Any]] = {}
        self._module_rules: tuple[object, tuple[ConsentRule, ...]] = (None, ())
        self._is_stopped = False

    @property
    def is_stopped(self) -> bool:
        """True if the user asked to store nothing of this conversation."""
        return self._root.is_stopped if self._root is not None else self._is_stopped

    def restore(self, *, is_stopped: bool) -> None:
        """Take over a request of an earlier process."""
        self._is_stopped = self._is_stopped or is_stopped

    def take_limits(self, module: str, kind: type[Settings], raw: Any) -> Any:
        """Keep the limits in a module's configuration; return the rest.

        A misspelt key is kept, too: it is reported, and memory stays off until it is corrected.
        """
        if not isinstance(raw, dict):
            return raw
        module_keys = {*kind.model_fields, *ServiceSettings.model_fields}
        misspelt = {key: raw[key] for key in raw if key not in module_keys and _is_misspelt(str(key))}
        block = {**misspelt, **limits_in(raw)}
        self._blocks[module] = block
        return {key: value for key, value in raw.items() if key not in block}

    def resolve(self, settings: ServiceSettings, agent_id: str | None) -> ConsentState:
        """Return the present consent for an agent, or for none."""
        folders = find_own_folders(settings.storage_root, agent_id)
        rules = [*self._files.read(folders, find_working_folder(self._coordinator)), *self.read_modules()]
        if self.is_stopped:
            rules.append(ConsentRule(SPOKEN, modes=ConsentModes("stopped")))
        return ConsentState((*rules, *read_host_rules(self._coordinator)))

    def has_changed(self) -> bool:
        """Return True if a file that limits memory changed since `resolve`."""
        return self._files.has_changed()

    def is_switched_off(self, settings: ServiceSettings) -> bool:
        """Return True if a source without an error switches memory off.

        After an error memory is off as well, but the tools stay, because they report it.
        """
        try:
            agent_id = get_activation(self._coordinator) or find_agent_name(self._coordinator, settings.agent_id)
            agent_id = agent_id or DEFAULT_AGENT
        except AgentMemoryError:
            agent_id = None  # the tools report it
        return self.resolve(settings, agent_id).is_switched_off

    async def hear(self, prompt: str, agent_id: str | None) -> bool:
        """Follow a request in a prompt; return True if it changed something."""
        request = await asyncio.to_thread(find_storing_request, prompt, agent_id or "")
        if request is None or self.is_stopped == (request == "stop"):
            return False
        self._is_stopped = request == "stop"
        return True

    def read_modules(self) -> tuple[ConsentRule, ...]:
        """Return the rules in the configuration of all our modules."""
        blocks = dict(self._iter_plan())
        for module, block in self._blocks.items():
            blocks[module] = {**blocks.get(module, {}), **block}
        if self._module_rules[0] != blocks:
            self._module_rules = blocks, read_module_rules(blocks, find_working_folder(self._coordinator))
        return self._module_rules[1]

    def _iter_plan(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the limits of each of our modules in the host's plan."""
        plan = self._coordinator.config
        for section in _SECTIONS if isinstance(plan, dict) else ():
            for entry in plan.get(section) or ():
                config = entry.get("config") if isinstance(entry, dict) else None
                if isinstance(config, dict) and entry.get("module") in MODULES:
                    yield entry["module"], limits_in(config)


def _is_misspelt(key: str) -> bool:
    return key not in _KNOWN_KEYS and bool(difflib.get_close_matches(key, SWITCHES, 1, _MIN_SIMILARITY))
