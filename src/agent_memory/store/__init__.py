"""Storage of one agent's records: a journal, and derived search indexes.

A segment holds the records of a span of the journal, read without a replay. It is immutable; later changes hide
what it holds. All of it can be rebuilt from the journal.
"""
