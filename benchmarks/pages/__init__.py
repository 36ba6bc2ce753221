"""Measure what rewrites of pages lose, and how requests are filed under topics."""
