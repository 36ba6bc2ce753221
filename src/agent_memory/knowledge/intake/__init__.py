"""Intake: files and conversations are read, redacted, stored and withdrawn."""
