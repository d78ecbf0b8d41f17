"""Weak learners: from row statistics to trees."""
