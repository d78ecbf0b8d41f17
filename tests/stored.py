"""Codes in files, and a CPU backend that trains from them."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from gpuboost.backends.cpu.backend import CpuBackend
from gpuboost.backends.cpu.matrix import CpuMatrix
from gpuboost.backends.cpu.threads import Team
from gpuboost.binning import Binned, BinnedMatrix, StoredMatrix
from gpuboost.binning.stored import stored_width, to_blocks

BEFORE = b"what stands before"


def stored(matrix: BinnedMatrix, path: Path, width: int | None = None) -> StoredMatrix:
    """The matrix in a file."""
    blocks = to_blocks(matrix.codes, stored_width(matrix.n_features) if width is None else width)
    path.write_bytes(BEFORE + blocks.tobytes())
    file = io.FileIO(path)
    return StoredMatrix(file, len(BEFORE), blocks.shape, matrix.n_bins, matrix.has_missing, matrix.code_counts)


class FileBackend(CpuBackend):
    """The CPU backend, which writes the matrices that it loads to files first."""

    def __init__(self, n_threads: int = 1) -> None:
        super().__init__(1)
        self.team = Team(n_threads)
        self.folder = tempfile.TemporaryDirectory()

    def load(self, matrix: Binned) -> CpuMatrix:
        assert isinstance(matrix, BinnedMatrix)
        return super().load(stored(matrix, Path(self.folder.name, "codes")))

    def close(self) -> None:
        super().close()
        self.folder.cleanup()
