from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from gpuboost.datasets import POKER_HANDS, label_poker_hands, make_poker_hands

# Of the C(52, 5) = 2,598,960 hands: 13 C(4,2) C(12,3) 4**3 with one pair, 10 (4**5 - 4) straights and so on.
N_HANDS = [1302540, 1098240, 123552, 54912, 10200, 5108, 3744, 624, 36, 4]

RANKS = {"A": 1, "T": 10, "J": 11, "Q": 12, "K": 13} | {str(rank): rank for rank in range(2, 10)}


def hand(text: str) -> list[int]:
    """Turn 'Ah Kh ...' into the ten columns."""
    return [number for card in text.split() for number in ("hsdc".index(card[1]) + 1, RANKS[card[0]])]


def cards(X: Any) -> Any:
    """Number the cards of hands from 0 to 51."""
    X = X.astype(np.int64)
    return 13 * (X[:, 0::2] - 1) + X[:, 1::2] - 1


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Ah 3s 5d 7c 9h", 0),
        ("2h 4h 6h 8h Ts", 0),  # four of a suit
        ("2h 3s 4d 5c 7h", 0),  # a gap in the straight
        ("Jh Qs Kd Ac 2h", 0),  # no straight goes around the ace
        ("Qh Ks Ad 2c 3h", 0),
        ("Kh As 2d 3c 4h", 0),
        ("2h 3s 9d Jc Ah", 0),
        ("2c Kd Qs Ah 3c", 0),
        ("Th Js Qd Kc 9s", 4),
        ("Ah 3s 5d 7c As", 1),
        ("2h 2s 3d 4c 5h", 1),  # a straight of four ranks with a pair
        ("2h 2s 3d 3c 5h", 2),
        ("2h 2s 2d 4c 5h", 3),
        ("2h 2s 2d 6c 5h", 3),
        ("Ah 2s 3d 4c 5h", 4),
        ("5h 3s Ad 2c 4h", 4),
        ("9h Ts Jd Qc Kh", 4),
        ("Th Js Qd Kc Ah", 4),
        ("Ah 3h 5h 7h 9h", 5),
        ("Jh Qh Kh Ah 2h", 5),
        ("2h 2s 2d 3c 3h", 6),
        ("Kh Ks Ad Ac Ah", 6),
        ("2h 2s 2d 2c 3h", 7),
        ("Ah As Ad Ac Kh", 7),
        ("Ad 2d 3d 4d 5d", 8),
        ("9c Tc Jc Qc Kc", 8),
        ("Qs Ks As 2s 3s", 5),  # not around the ace either
        ("Tc Jc Qc Kc Ac", 9),
        ("Ks As Qs Ts Js", 9),
    ],
)
def test_hands_by_hand(text: str, label: int) -> None:
    assert label_poker_hands([hand(text)]).tolist() == [label]


@pytest.mark.slow
def test_all_hands() -> None:
    deck = itertools.chain.from_iterable(itertools.combinations(range(52), 5))
    every = np.fromiter(deck, np.uint8, 5 * sum(N_HANDS)).reshape(-1, 5)
    X = np.empty((len(every), 10), np.uint8)
    X[:, 0::2] = every // 13 + 1
    X[:, 1::2] = every % 13 + 1
    assert np.bincount(label_poker_hands(X)).tolist() == N_HANDS


@given(
    st.lists(st.integers(0, 51), min_size=5, max_size=5, unique=True),
    st.permutations(range(5)),
    st.permutations(range(4)),
)
def test_neither_the_order_nor_the_names_of_suits_matter(drawn: list[int], order: list[int], suit_names: list[int]) -> None:
    plain = [number for card in drawn for number in (card // 13 + 1, card % 13 + 1)]
    shuffled = [number for i in order for number in (suit_names[drawn[i] // 13] + 1, drawn[i] % 13 + 1)]
    first, second = label_poker_hands([plain, shuffled])
    assert first == second


def test_no_seed_gives_other_hands_each_time() -> None:
    assert (make_poker_hands(100)[0] != make_poker_hands(100)[0]).any()


def test_form_of_the_result() -> None:
    X, y = make_poker_hands(1000, random_state=0)
    assert (X.shape, X.dtype) == ((1000, 10), np.uint8)
    assert (y.shape, y.dtype) == ((1000,), np.int64)
    assert np.unique(X[:, 0::2]).tolist() == [1, 2, 3, 4]
    assert np.unique(X[:, 1::2]).tolist() == list(range(1, 14))
    np.testing.assert_array_equal(y, label_poker_hands(X))
    assert len(POKER_HANDS) == len(N_HANDS) == len(set(POKER_HANDS))


def test_no_card_twice_in_a_hand() -> None:
    in_order = np.sort(cards(make_poker_hands(50_000, random_state=1)[0]), axis=1)
    assert (np.diff(in_order, axis=1) > 0).all()


@pytest.mark.parametrize(("first", "second"), [*itertools.combinations(range(5), 2)])
def test_ordered_pairs_of_cards_are_equally_likely(first: int, second: int) -> None:
    """Pearson's statistic over the 52 * 51 ordered pairs at two places stays within 5 standard deviations."""
    drawn = cards(make_poker_hands(100_000, random_state=2)[0])
    counts = np.bincount(52 * drawn[:, first] + drawn[:, second], minlength=52 * 52).reshape(52, 52)
    assert not counts.diagonal().any()
    expected = 100_000 / (52 * 51)
    statistic = ((counts[~np.eye(52, dtype=bool)] - expected) ** 2 / expected).sum()
    degrees = 52 * 51 - 1
    assert abs(statistic - degrees) < 5 * np.sqrt(2 * degrees)


def test_class_frequencies() -> None:
    """No count is one that the binomial distribution gives less often than 1 in a million, on either side."""
    n = 500_000
    counts = np.bincount(make_poker_hands(n, random_state=3)[1], minlength=10)
    share = np.array(N_HANDS) / sum(N_HANDS)
    assert (binom.cdf(counts, n, share) > 1e-6).all()
    assert (binom.sf(counts - 1, n, share) > 1e-6).all()


def deal(words: Iterator[int]) -> list[int]:
    """Take a hand from a deck, the first card by the remainder of a number by 52, the next by that of the quotient by 51 ..."""
    n_deals = math.perm(52, 5)
    number = next(word for word in (int(word) % 2**32 for word in words) if word < 2**32 // n_deals * n_deals)
    deck = list(range(52))
    drawn = []
    for left in (52, 51, 50, 49, 48):
        number, place = divmod(number, left)
        card = deck.pop(place)
        drawn += [card // 13 + 1, card % 13 + 1]
    return drawn


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_hands_come_from_the_raw_words(kind: type[np.random.BitGenerator]) -> None:
    bits = kind(5)
    words = (bits.random_raw() for _ in itertools.count())
    X, _ = make_poker_hands(300, np.random.Generator(kind(5)))
    assert X.tolist() == [deal(words) for _ in range(300)]


def test_the_same_hands_for_ever() -> None:
    """Fixed when the function was written; `test_hands_come_from_the_raw_words` says that they are as meant."""
    X, y = make_poker_hands(3, 0)
    assert X.tolist() == [[2, 11, 1, 2, 1, 5, 2, 4, 3, 13], [4, 7, 4, 2, 4, 9, 4, 5, 1, 2], [4, 2, 4, 10, 3, 10, 2, 11, 1, 12]]
    assert y.tolist() == [0, 1, 1]


def test_a_seed_is_that_of_a_pcg64_and_fewer_hands_are_the_first_ones() -> None:
    X, y = make_poker_hands(2000, 11)
    np.testing.assert_array_equal(X, make_poker_hands(2000, np.random.Generator(np.random.PCG64(11)))[0])
    for n in (1, 7, 1999):
        np.testing.assert_array_equal(X[:n], make_poker_hands(n, 11)[0])
    generator = np.random.Generator(np.random.PCG64(11))
    parts = [make_poker_hands(n, generator) for n in (1, 500, 1499)]
    np.testing.assert_array_equal(X, np.concatenate([part[0] for part in parts]))
    np.testing.assert_array_equal(y, np.concatenate([part[1] for part in parts]))


def test_seeds() -> None:
    X, _ = make_poker_hands(100, random_state=7)
    np.testing.assert_array_equal(X, make_poker_hands(100, random_state=7)[0])
    np.testing.assert_array_equal(X, make_poker_hands(100, random_state=np.random.default_rng(7))[0])
    assert (make_poker_hands(100, random_state=8)[0] != X).any()
    generator = np.random.default_rng(7)
    first, second = (make_poker_hands(100, random_state=generator)[0] for _ in range(2))
    assert (first != second).any()


@pytest.mark.parametrize("n_samples", [0, -1, 1.5, 10.0, "10", None])
def test_bad_number_of_hands(n_samples: Any) -> None:
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1, got"):
        make_poker_hands(n_samples)


@pytest.mark.parametrize("random_state", ["0", 1.0, np.random.RandomState(0), [1]])
def test_bad_kind_of_seed(random_state: Any) -> None:
    with pytest.raises(TypeError, match=r"random_state must be None, an integer or a numpy.random.Generator, got"):
        make_poker_hands(3, random_state)


def test_bad_seed() -> None:
    with pytest.raises(ValueError, match="random_state must be at least 0, got -1"):
        make_poker_hands(3, -1)


def test_integers_of_numpy_are_numbers_of_hands_and_seeds() -> None:
    X, _ = make_poker_hands(np.int64(3), np.uint32(7))
    np.testing.assert_array_equal(X, make_poker_hands(3, 7)[0])


def test_bad_hands() -> None:
    good = hand("Ah 3s 5d 7c 9h")
    with pytest.raises(ValueError, match=r"shape \(n_samples, 10\), got \(10,\)"):
        label_poker_hands(good)
    with pytest.raises(ValueError, match="ranks must be 1 to 13, got 0 to 9"):
        label_poker_hands([[*good[:1], 0, *good[2:]]])
    with pytest.raises(ValueError, match="suits must be 1 to 4, got 1 to 300"):
        label_poker_hands([[300, *good[1:]]])
    assert label_poker_hands(np.empty((0, 10), np.uint8)).shape == (0,)
