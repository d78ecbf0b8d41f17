"""Boosters that the papers compare with, as thin as the engine makes them."""
