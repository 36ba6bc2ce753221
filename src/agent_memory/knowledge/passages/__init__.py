"""Passages: the units of documents and conversations, cut by structure alone."""
