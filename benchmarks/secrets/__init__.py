"""Measure leaked secrets, touched statements and CPU time of the redactor."""
