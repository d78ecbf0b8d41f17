"""``python -m gpuboost``."""

from __future__ import annotations

from gpuboost.cli import main

if __name__ == "__main__":
    main()
