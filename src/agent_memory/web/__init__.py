"""The page: memories in a browser on this machine.

Needs the extra `web`. Each view is an HTML page and, with `.json` after its path, a document for programs.
"""
