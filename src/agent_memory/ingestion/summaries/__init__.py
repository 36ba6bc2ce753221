"""Summaries of conversations: of what they are made, by quoting or by a model, and the step that keeps them."""
