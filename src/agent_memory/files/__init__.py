"""Names on disk, atomic writes, locks and temporary files.

Knows no record and no format of a file.
"""
