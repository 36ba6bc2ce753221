"""Digest: a session's agent makes statements of passages, checked against quotes."""
