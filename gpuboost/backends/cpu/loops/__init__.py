"""The loops of the CPU backend that numba compiles."""
