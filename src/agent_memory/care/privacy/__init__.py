"""Privacy: purge, encryption and stored secrets.

A name is imported on first use. The two names of the inbox are from `agent_memory.memory`.
"""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
