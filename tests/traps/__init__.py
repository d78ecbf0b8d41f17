"""Kinds of faults that users of other boosting libraries have met, each with the right answer."""
