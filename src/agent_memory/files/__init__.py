"""Names and places on disk, atomic writes, locks, temporary files, kinds of file system.

Knows no record and no format of a file.
"""
