"""sympy: the recurrence, and what follows from it."""
