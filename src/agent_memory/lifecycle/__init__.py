"""What happens to memories with time: how important they are, what is archived, backups, what a session begins with.

Each name loads what it needs when it is first asked for.
"""
