"""A language model as a port, whoever gives it, and whether what it says stands in what it was given."""
