"""Class names of the source specifications."""
