"""Which calls read only the project: paths, shell words and local programs."""
