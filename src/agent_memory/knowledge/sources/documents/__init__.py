"""Documents that are not plain text."""
