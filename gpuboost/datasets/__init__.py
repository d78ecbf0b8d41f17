"""Data sets: some that are made, and some that are downloaded from their original place or read from files."""

from gpuboost.datasets.dataset import Dataset, read_dataset
from gpuboost.datasets.fetch import fetch_covtype, fetch_mnist, fetch_uci
from gpuboost.datasets.poker import POKER_HANDS, label_poker_hands, make_poker_hands
from gpuboost.datasets.synthetic import make_majority, make_twonorm

__all__ = [
    "POKER_HANDS",
    "Dataset",
    "fetch_covtype",
    "fetch_mnist",
    "fetch_uci",
    "label_poker_hands",
    "make_majority",
    "make_poker_hands",
    "make_twonorm",
    "read_dataset",
]
