"""IDs of entities, made of their names. Pure."""

from __future__ import annotations

from agent_memory.knowledge.entities.matching.normal import full_form, normal_form
from agent_memory.models import ENTITY, derived_id


def get_entity_id(name: str, group: str) -> str:
    """Return the ID of the entity of a name, whatever text is first."""
    return list_entity_ids(name, group)[0]


def list_entity_ids(name: str, group: str) -> tuple[str, ...]:
    """Return the possible IDs of an entity, that of a new one first.

    Earlier versions made those of firms without the legal form.
    """
    return tuple(derived_id(ENTITY.prefix, group, form) for form in dict.fromkeys((full_form(name), normal_form(name))))
