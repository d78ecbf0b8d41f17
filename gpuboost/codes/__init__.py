"""Coding matrices: from several classes to binary problems, and from their margins back to classes."""
