"""Storage of one agent's records: the journal is the truth, what is searched is derived from it.

A segment holds the records of a stretch of the journal, read without a replay. It is immutable; later changes hide
what it holds. All of it can be rebuilt from the journal.
"""
