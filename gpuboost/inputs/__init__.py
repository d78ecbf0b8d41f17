"""From the caller's arrays, tables, labels and weights to checked NumPy arrays."""
