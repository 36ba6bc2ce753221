"""Configuration files of other hosts, and our entry in them."""
