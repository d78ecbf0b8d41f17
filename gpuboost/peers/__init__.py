"""Workers that train one model together: what they exchange, and how.

`base.py` is the contract, `threads.py` a group of workers within one process.
"""
