"""Turns of a talk among the documents, and what the talk around it tells about each of them.

The ranking asks for `evidence` and knows nothing else of talks. That a document is a turn is told by the form of its
text (`speakers`) and by the session that made it (`sessions`).
"""

from agent_memory.retrieval.turns.evidence import evidence
from agent_memory.retrieval.turns.sessions import Talks
from agent_memory.retrieval.turns.speakers import named_in, without_names

__all__ = ["Talks", "evidence", "named_in", "without_names"]
