"""A book that thirteen agents write together: four processes, one workspace, scripted models."""
