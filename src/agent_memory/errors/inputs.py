"""Errors of what was given: settings, declarations, values, names."""

from __future__ import annotations

from typing import ClassVar

from agent_memory.errors.root import AgentMemoryError


class ConfigurationError(AgentMemoryError):
    """A setting has a wrong value, or two modules were given different values for a shared one."""

    number = "MEM-010"
    default_code = "configuration"
    default_recovery = "Correct the named setting and start a new session; memory stays off until then."


class IdentityError(ConfigurationError):
    """No agent is active in this session, or a change of agent needs the user's own words."""

    number = "MEM-011"
    default_code = "no_identity"
    default_recovery = (
        "Say 'start as NAME with memory enabled', or set agent_id below overrides: tool-memory-semantic: config: in "
        "~/.amplifier/settings.yaml."
    )


class DeclarationError(ConfigurationError):
    """What a workspace is declared to be is wrong, or was changed so that rows might not fit; nothing was changed."""

    number = "MEM-023"
    default_code = "declaration"
    default_recovery = "Correct the named lines; `agent-memory workspace check FILE` looks at them again."


class ValidationError(AgentMemoryError, ValueError):
    """An input breaks a rule of the data model; nothing was written."""

    number = "MEM-012"
    default_code = "invalid"
    default_recovery = "Correct the input and try again."


class UnknownIdError(ValidationError):
    """No memory has the given id; nothing was changed."""

    number = "MEM-013"
    default_code = "unknown_id"
    default_recovery = "Find the right id with memory_search or memory_list_recent."


class ResourceNotFoundError(UnknownIdError):
    """No resource has the given id; nothing was changed.

    Args:
        resource_id: The id.
    """

    number = "MEM-001"
    default_code = "resource_not_found"
    default_recovery = "Verify that the id is right."
    suggestions: ClassVar[tuple[str, ...]] = ("Use list_by_type() to see which resources there are.",)

    def __init__(self, resource_id: str) -> None:
        super().__init__(f"Resource {resource_id!r} not found.")
        self.resource_id = resource_id

    def __reduce__(self) -> tuple[object, ...]:
        """Return what makes it again in another process."""
        return type(self), (self.resource_id,)

    @property
    def context(self) -> dict[str, object]:
        """The id."""
        return {"resource_id": self.resource_id}


class CategoryNotFoundError(UnknownIdError):
    """No topic has the given name; nothing was changed.

    Args:
        category_name: The name.
        available: The names that there are.
        passages: Number of passages that mention the name.
    """

    number = "MEM-002"
    default_code = "category_not_found"
    default_recovery = "Create the category with create_category()."

    def __init__(self, category_name: str, available: list[str] | None = None, passages: int = 0) -> None:
        verb = "mentions" if passages == 1 else "mention"
        mentions = f" {passages:,} passage{'s' * (passages != 1)} {verb} it." if passages else ""
        super().__init__(f"Category {category_name!r} not found.{mentions}")
        self.category_name = category_name
        self.available = available
        self.passages = passages

    def __reduce__(self) -> tuple[object, ...]:
        """Return what makes it again in another process."""
        return type(self), (self.category_name, self.available, self.passages)

    @property
    def context(self) -> dict[str, object]:
        """The name, and those that there are."""
        return {"category_name": self.category_name, "available": self.available}

    @property
    def recovery_suggestions(self) -> list[str]:
        """To create it, or one of those that there are."""
        there = [f"Available categories: {', '.join(self.available)}."] if self.available else []
        return [self.recovery, *there]


class CategoryExistsError(ValidationError):
    """A topic has the given name already; nothing was changed.

    Args:
        category_name: The name.
    """

    number = "MEM-003"
    default_code = "category_exists"
    default_recovery = "Use a different name."
    suggestions: ClassVar[tuple[str, ...]] = ("Use get_by_name() to get the one that there is.",)

    def __init__(self, category_name: str) -> None:
        super().__init__(f"Category {category_name!r} already exists.")
        self.category_name = category_name

    def __reduce__(self) -> tuple[object, ...]:
        """Return what makes it again in another process."""
        return type(self), (self.category_name,)

    @property
    def context(self) -> dict[str, object]:
        """The name."""
        return {"category_name": self.category_name}


class ConflictError(ValidationError):
    """The memory was changed since the caller read it; nothing was changed."""

    number = "MEM-014"
    default_code = "conflict"
    default_recovery = "Read it again, decide anew, and give the number of the change that it has now."


class NotAllowedError(ValidationError):
    """The declaration of the workspace does not allow this agent to write this; nothing was written."""

    number = "MEM-024"
    default_code = "not_allowed"
    default_recovery = "Leave this to an agent that may write it, or change the declaration."


class RowNotFoundError(UnknownIdError):
    """No row, step or snapshot has the given name; nothing was changed."""

    number = "MEM-025"
    default_code = "row_not_found"
    default_recovery = "List what there is, and use a name from there."


class LeaseError(ConflictError):
    """Somebody else has claimed it, or the claim has ended; nothing was written."""

    number = "MEM-026"
    default_code = "leased"
    default_recovery = "Ask for the next steps, and claim one that is free."
