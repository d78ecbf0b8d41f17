"""Devices: the contract (`base`) and its implementations."""
