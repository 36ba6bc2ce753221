"""Declaration of a workspace: model, parser and checks."""
