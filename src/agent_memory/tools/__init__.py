"""Agent tools without a host: schemas, argument checks, consent and answers.

A host gives each tool a `HostSession` and calls `answer` with the arguments of a model.
"""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
