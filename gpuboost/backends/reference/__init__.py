"""The NumPy backend: the reference that the others are tested against."""
