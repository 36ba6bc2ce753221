"""How many secrets the redactor leaves, how much else it touches, what it costs; next to gitleaks."""
