"""Printers from expressions to torch and Triton text, and rendering."""
