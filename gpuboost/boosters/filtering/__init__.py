"""Boosting by filtering: rounds that draw fresh rows of a stream (Bradley 2008, FilterBoost)."""
