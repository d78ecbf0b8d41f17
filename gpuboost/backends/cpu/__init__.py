"""The CPU backend: compiled loops on a team of threads."""
