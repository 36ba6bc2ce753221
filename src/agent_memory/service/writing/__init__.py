"""The one write path. Each text that is kept takes the same steps here, from every caller.

Bound → normalise → validate → redact all text fields → is it the same (`agent_memory.capture.sameness`) → trust gate →
append → event → audit. The storage redacts once more what is not marked as `Redacted`.
"""

from agent_memory.service.writing.deriving import Derived, Deriving
from agent_memory.service.writing.importing import Import, Imported
from agent_memory.service.writing.looking import Looking
from agent_memory.service.writing.path import WritePath, Written, said_in

__all__ = ["Derived", "Deriving", "Import", "Imported", "Looking", "WritePath", "Written", "said_in"]
