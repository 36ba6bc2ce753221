"""Embedders behind one protocol, and a cache of vectors.

Importing this loads no model and no numpy.
"""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
