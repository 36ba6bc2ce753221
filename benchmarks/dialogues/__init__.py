"""Ordinary dialogues: wishes of the user that must be kept, findings that must come back."""
