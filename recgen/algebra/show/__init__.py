"""The algebra as readable mathematics, plain text or LaTeX: nodes, programs, whole derivations, specs."""
