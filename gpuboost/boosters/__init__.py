"""Boosting algorithms: the loop of each paper, one file each."""
