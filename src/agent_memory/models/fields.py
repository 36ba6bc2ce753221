"""Groups of a record's fields, by what they are for. Whoever treats some fields alike takes the group from here."""

from __future__ import annotations

from typing import Final

IDENTITY: Final = frozenset({"id", "agent_id", "timestamp", "created_by_session"})
"""Given when a record is stored; no change touches them."""

ACCESS: Final = frozenset({"access_count", "last_accessed"})
"""How often it was found; counted, never set by a caller."""

PLACE: Final = frozenset({"pinned", "expires_at", "promoted_at", "evicted_at"})
"""Where and how long it is shown: they say nothing, so whoever changes them makes no statement."""

ESTIMATES: Final = frozenset({"confidence", "importance"})
"""Numbers about what it says."""
