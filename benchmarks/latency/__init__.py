"""How long things take, beside the budget for each, and beside what nobody can be faster than."""
