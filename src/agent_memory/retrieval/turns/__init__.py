"""Turns of a talk among the memories, and what the talk tells about each of them."""
