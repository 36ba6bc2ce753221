"""Records that are sealed in segments: read without a replay, hidden once they change, sealed by a child process."""
