"""Digest: the agent of a session makes statements of passages, and each is checked against its quote."""
