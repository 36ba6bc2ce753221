"""Summaries of conversations by quotes, and their background stage."""
