"""Rows that come in a stream: from arrays, files, generators or oracles to the steps that a booster draws from."""

from gpuboost.streams.arrays import ArraySource
from gpuboost.streams.batches import BatchSource
from gpuboost.streams.contract import Batch, Source, Step
from gpuboost.streams.dask_collections import DaskSource
from gpuboost.streams.dispatch import as_source
from gpuboost.streams.files import DatasetSource
from gpuboost.streams.oracle import OracleSource
from gpuboost.streams.reader import ExampleReader

__all__ = [
    "ArraySource",
    "Batch",
    "BatchSource",
    "DaskSource",
    "DatasetSource",
    "ExampleReader",
    "OracleSource",
    "Source",
    "Step",
    "as_source",
]
