"""Knowledge: documents, conversations, and what is made of them.

Names of the specification "sigil" are in `compat`. Each name is loaded at its first use.
"""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
