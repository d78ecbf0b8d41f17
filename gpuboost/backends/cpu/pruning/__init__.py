"""Exact pruning on the CPU: the same trees from fewer additions (QuickBoost)."""
