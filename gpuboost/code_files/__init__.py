"""Training sets that stay on the disk: code files, written once from any source of rows."""

from gpuboost.code_files.code_file import CodeFile

__all__ = ["CodeFile"]
