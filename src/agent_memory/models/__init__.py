"""The data model: records, kinds, searches and their results.

Each name is loaded at its first use.
"""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
