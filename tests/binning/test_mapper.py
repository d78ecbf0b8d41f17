from __future__ import annotations

import tracemalloc
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpuboost.binning.columns
from gpuboost.binning import MAX_VALUE_BINS, BinMapper, bin_block, midpoint

LARGEST = np.finfo(np.float64).max
TINY = 5e-324
INF = np.inf
NAN = np.nan

untimed = settings(deadline=None)
numbers = st.floats(allow_nan=False)
few_numbers = st.sampled_from([-INF, -LARGEST, -1.5, -TINY, -0.0, 0.0, TINY, 0.1, 1.0, 1.0 + 2**-52, LARGEST, INF])
columns = st.lists(st.one_of(numbers, few_numbers, st.just(NAN)), min_size=1, max_size=60)


def column(values, dtype=np.float64):
    return np.array(values, dtype=dtype).reshape(-1, 1)


def assert_same(one: BinMapper, other: BinMapper) -> None:
    assert one.cut_values.tobytes() == other.cut_values.tobytes()
    assert one.cut_offsets.tolist() == other.cut_offsets.tolist()
    assert one.has_missing.tolist() == other.has_missing.tolist()


def codes_by_hand(X, mapper: BinMapper) -> list[list[int]]:
    """The definition: 0 if x is NaN, else 1 + number of cuts <= x."""
    return [
        [0 if x != x else 1 + sum(c <= x for c in mapper.cuts(f).tolist()) for x in map(float, X[:, f])]
        for f in range(X.shape[1])
    ]


# ---- midpoint


@pytest.mark.parametrize(
    ("a", "b", "cut"),
    [
        (0.0, 1.0, 0.5),
        (-3.0, 1.0, -1.0),
        (1e308, 1.5e308, 1.25e308),
        (-LARGEST, LARGEST, 0.0),
        (1.0, 1.0 + 2**-52, 1.0 + 2**-52),  # neighbours: the exact midpoint is no float
        (0.0, TINY, TINY),
        (-TINY, 0.0, 0.0),
        (-3 * TINY, -TINY, -2 * TINY),
        (LARGEST, INF, INF),
        (-INF, -LARGEST, -LARGEST),
        (-INF, INF, 0.0),
        (0.0, INF, LARGEST / 2),
    ],
)
def test_midpoint_by_hand(a, b, cut):
    assert midpoint(np.array([a]), np.array([b])).tolist() == [cut]


@pytest.mark.slow
@untimed
@given(st.one_of(numbers, few_numbers), st.one_of(numbers, few_numbers))
def test_midpoint_separates_any_two_numbers(x, y):
    a, b = min(x, y), max(x, y)
    if a == b:
        return
    (cut,) = midpoint(np.array([a]), np.array([b]))
    assert a < cut <= b
    assert cut != 0 or not np.signbit(cut)


@untimed
@given(st.floats(-1e300, 1e300, allow_subnormal=False), st.floats(-1e300, 1e300, allow_subnormal=False))
def test_midpoint_is_the_rounded_exact_one(x, y):
    a, b = min(x, y), max(x, y)
    exact = float((Fraction(a) + Fraction(b)) / 2)
    if min(abs(a), abs(b)) < 1e-300 or exact == a:  # halves would be subnormal, or there is no float between
        return
    assert midpoint(np.array([a]), np.array([b])) == exact


# ---- few distinct values: a cut between any two


@untimed
@given(columns)
def test_every_distinct_value_has_its_own_code(values):
    X = column(values)
    mapper = BinMapper.fit(X)
    distinct = sorted({v for v in values if v == v})  # -0.0 == 0.0
    assert mapper.n_cuts.tolist() == [max(0, len(distinct) - 1)]
    assert all(a < c <= b for (a, b), c in zip(pairwise(distinct), mapper.cuts(0), strict=True))
    expected = [0 if v != v else 1 + distinct.index(v) for v in values]
    binned = mapper.transform(X)
    assert binned.codes.tolist() == [expected]
    assert mapper.has_missing.tolist() == [0 in expected]
    assert mapper.n_bins.tolist() == [mapper.n_cuts[0] + 2]


@untimed
@given(columns, columns, st.integers(2, 9))
def test_codes_follow_the_definition(values, new, max_bins):
    mapper = BinMapper.fit(column(values), max_bins=max_bins)
    cuts = mapper.cuts(0)
    with np.errstate(over="ignore"):
        X = column([*values, *new, *cuts, *np.nextafter(cuts, -INF), *np.nextafter(cuts, INF)])
    assert mapper.transform(X).codes.tolist() == codes_by_hand(X, mapper)


@untimed
@given(columns, columns, st.integers(2, 9))
def test_codes_keep_the_order_of_values(values, new, max_bins):
    X = column(sorted(v for v in values + new if v == v))
    codes = BinMapper.fit(column(values), max_bins=max_bins).transform(X).codes[0]
    assert (codes[1:] >= codes[:-1]).all()
    assert (codes > 0).all()


def test_a_value_on_a_cut_goes_right_and_the_float_below_goes_left():
    mapper = BinMapper.fit(column([1.0, 2.0, 4.0]))
    assert mapper.cuts(0).tolist() == [1.5, 3.0]
    X = column([np.nextafter(1.5, 0), 1.5, np.nextafter(1.5, 2), np.nextafter(3.0, 0), 3.0])
    assert mapper.transform(X).codes.tolist() == [[1, 2, 2, 2, 3]]


def test_float64_tells_apart_what_float32_does_not():
    X = column([0.671, 0.671 + 1e-9])
    assert BinMapper.fit(X).transform(X).codes.tolist() == [[1, 2]]
    assert BinMapper.fit(X.astype(np.float32)).n_cuts.tolist() == [0]


def test_infinities_are_ordinary_extreme_values():
    X = column([-INF, 0.0, 1.0, INF, NAN])
    mapper = BinMapper.fit(X)
    assert mapper.cuts(0).tolist() == [-LARGEST / 2, 0.5, LARGEST / 2]
    assert mapper.transform(X).codes.tolist() == [[1, 2, 3, 4, 0]]
    X = column([LARGEST, INF, -LARGEST, -INF])
    assert BinMapper.fit(X).transform(X).codes.tolist() == [[3, 4, 2, 1]]
    assert BinMapper.fit(column([INF, INF])).n_cuts.tolist() == [0]


def test_degenerate_columns_are_harmless():
    X = np.array([[NAN, 7.0, 0.0, 1.0], [NAN, 7.0, NAN, 2.0], [NAN, 7.0, 0.0, 3.0]])
    mapper = BinMapper.fit(X)
    binned = mapper.transform(X)
    assert mapper.n_cuts.tolist() == [0, 0, 0, 2]
    assert binned.has_missing.tolist() == [True, False, True, False]
    assert binned.codes.tolist() == [[0, 0, 0], [1, 1, 1], [1, 0, 1], [1, 2, 3]]
    assert binned.usable.tolist() == [False, False, True, True]
    assert binned.n_bins.tolist() == [2, 2, 2, 4]
    assert binned.bin_offsets.tolist() == [0, 2, 4, 6, 10]
    assert (binned.n_features, binned.n_rows) == (4, 3)
    unseen = np.array([[5.0, NAN, -1.0, NAN]])  # numbers where only NaN was seen, and NaN where none was
    assert mapper.transform(unseen).codes.tolist() == [[1], [0], [1], [0]]


def test_a_matrix_without_rows_or_columns():
    mapper = BinMapper.fit(np.empty((0, 2)))
    assert (mapper.n_cuts.tolist(), mapper.has_missing.tolist()) == ([0, 0], [False, False])
    assert mapper.transform(np.empty((0, 2))).codes.shape == (2, 0)
    mapper = BinMapper.fit(np.empty((3, 0)))
    assert (mapper.n_features, mapper.cut_offsets.tolist()) == (0, [0])
    binned = mapper.transform(np.empty((3, 0)))
    assert (binned.codes.shape, binned.bin_offsets.tolist()) == ((0, 3), [0])


# ---- more distinct values than bins: exact weighted quantiles


def starts_by_hand(weights: list[int], max_bins: int) -> list[int]:
    """Slow and literal: where bins start, in exact fractions."""
    heavy: set[int] = set()
    for i in sorted(range(len(weights)), key=lambda i: -weights[i]):
        left = sum(w for k, w in enumerate(weights) if k not in heavy)
        if weights[i] >= Fraction(left, max_bins - len(heavy)):
            heavy.add(i)

    def labels(n_shares: int) -> list[tuple[str, int, int]]:
        light = sum(w for k, w in enumerate(weights) if k not in heavy)
        before, n_heavy, result = 0, 0, []
        for i, w in enumerate(weights):
            if i in heavy:
                n_heavy += 1
                result.append(("heavy", i, 0))
            else:
                result.append(("light", int(Fraction(before * n_shares, light)), n_heavy))
                before += w
        return result

    def starts(labels) -> list[int]:
        return [i for i, (a, b) in enumerate(pairwise(labels), 1) if a != b]

    for n_shares in range(max_bins - len(heavy), 0, -1):
        if len(starts(labels(n_shares))) + 1 <= max_bins:
            return starts(labels(n_shares))
    bins = [0, *starts(labels(1))]
    runs = [
        (sum(weights[first:last]), k) for k, (first, last) in enumerate(pairwise([*bins, len(weights)])) if first not in heavy
    ]
    joined = {max(k, 1) for _, k in sorted(runs)[: len(bins) - max_bins]}
    return [first for k, first in enumerate(bins) if k > 0 and k not in joined]


def cut_starts(weights, max_bins: int) -> list[int]:
    """Where bins start among the values 0, 1, 2 ... of the given weights: their cuts are i - 1/2."""
    X = column(range(len(weights)))
    mapper = BinMapper.fit(X, max_bins=max_bins, integer_weights=np.array(weights, dtype=np.int64))
    return [int(c + 0.5) for c in mapper.cuts(0)]


some_weights = st.lists(st.one_of(st.integers(1, 4), st.integers(1, 300)), min_size=3, max_size=40)


@pytest.mark.parametrize(
    ("weights", "max_bins", "starts"),
    [
        ([1, 1, 1, 1], 2, [2]),
        ([1, 1, 1, 1, 1, 1], 3, [2, 4]),
        ([1, 1, 1, 3], 2, [3]),  # 3 * 2 >= 6: heavy
        ([1, 2, 1], 2, [2]),  # one heavy value between two light ones: the first of the lightest joins it
        (
            [1, 2, 9, 2, 1, 9, 1],
            4,
            [2, 3, 5],
        ),  # runs of weight 3, 3 and 1 beside two heavy values: one too many
        (
            [1] * 10 + [90] + [1] * 10,
            5,
            [5, 10, 11, 16],
        ),  # 4 shares of 5, the heavy value between two of them
        ([1] * 7 + [90] + [1] * 13, 5, [7, 8, 15]),  # 4 shares would make 6 bins; 3 begin at 0, 20/3, 40/3
    ],
)
def test_quantiles_by_hand(weights, max_bins, starts):
    assert starts_by_hand(weights, max_bins) == starts
    assert cut_starts(weights, max_bins) == starts


@untimed
@given(some_weights, st.integers(2, 12))
def test_quantiles_match_the_literal_definition(weights, max_bins):
    if len(weights) > max_bins:
        assert cut_starts(weights, max_bins) == starts_by_hand(weights, max_bins)


@untimed
@given(st.lists(st.integers(1, 4), min_size=20, max_size=200), st.integers(2, 12))
def test_without_heavy_values_all_bins_are_used_and_balanced(weights, max_bins):
    """A share is total / max_bins; a bin starts with a share and overshoots by less than the last value."""
    total, largest = sum(weights), max(weights)
    if largest * max_bins >= total:
        return
    bounds = [0, *cut_starts(weights, max_bins), len(weights)]
    sums = [sum(weights[first:last]) for first, last in pairwise(bounds)]
    assert len(sums) == max_bins
    assert all(abs(max_bins * s - total) < max_bins * largest for s in sums)


@untimed
@given(some_weights, st.integers(2, 12))
def test_no_bin_without_heavy_value_weighs_two_shares(weights, max_bins):
    """At least n_left - n_heavy shares are made of what the heavy values leave, and at least one."""
    heavy: list[int] = []
    for w in sorted(weights, reverse=True):
        if w * (max_bins - len(heavy)) >= sum(weights) - sum(heavy):
            heavy.append(w)
    n_shares = max(1, max_bins - 2 * len(heavy))
    bounds = [0, *cut_starts(weights, max_bins), len(weights)]
    assert len(bounds) - 1 <= max_bins
    for first, last in pairwise(bounds):
        inside = weights[first:last]
        if len(weights) > max_bins and not set(inside) & set(heavy):
            assert sum(inside) * n_shares < 2 * (sum(weights) - sum(heavy))


def test_equal_quantiles_of_many_values():
    X = np.random.default_rng(0).permutation(2000).astype(np.float64).reshape(-1, 1)
    for max_bins in (2, 3, 100, 255):
        mapper = BinMapper.fit(X, max_bins=max_bins)
        sizes = np.bincount(mapper.transform(X).codes[0])[1:]
        assert sizes.size == max_bins
        assert set(sizes) <= {2000 // max_bins, -(-2000 // max_bins)}


@untimed
@given(st.data(), st.integers(2, 8))
def test_integer_weights_mean_repeated_rows(data, max_bins):
    values = data.draw(columns)
    weights = data.draw(st.lists(st.integers(0, 5), min_size=len(values), max_size=len(values)))
    X, units = column(values), np.array(weights)
    weighted = BinMapper.fit(X, max_bins=max_bins, integer_weights=units)
    assert_same(weighted, BinMapper.fit(np.repeat(X, units, axis=0), max_bins=max_bins))
    order = np.array(data.draw(st.permutations(range(len(values)))))
    assert_same(weighted, BinMapper.fit(X[order], max_bins=max_bins, integer_weights=units[order]))


@untimed
@given(some_weights, st.integers(2, 12), st.integers(1, 10**14))
def test_the_unit_of_the_weights_does_not_matter(weights, max_bins, factor):
    starts = cut_starts(weights, max_bins)
    assert cut_starts([w * factor for w in weights], max_bins) == starts
    largest_factor = (2**63 - 1) // sum(weights)
    assert cut_starts([w * largest_factor for w in weights], max_bins) == starts


def test_products_beyond_int64_are_exact():
    """Heavy values amid many shares of a large total: share * weight is up to 20 times 2**63."""
    rng = np.random.default_rng(9)
    for _ in range(20):
        weights = rng.integers(1, 4, 200)
        weights[rng.choice(200, 5, replace=False)] = 25
        factor = (2**63 - 1) // int(weights.sum())
        assert cut_starts(weights * factor, 20) == starts_by_hand(weights.tolist(), 20)


def test_rows_of_weight_zero_do_not_exist():
    X = np.array([[1.0, NAN], [50000.0, NAN], [2.0, 3.0], [3.0, 4.0], [NAN, 4.5]])
    mapper = BinMapper.fit(X, integer_weights=np.array([1, 0, 2, 3, 0]))
    assert_same(mapper, BinMapper.fit(X[[0, 2, 3]]))
    assert mapper.has_missing.tolist() == [False, True]
    assert BinMapper.fit(X, integer_weights=np.zeros(5, dtype=np.int64)).n_cuts.tolist() == [0, 0]


@untimed
@given(
    st.lists(st.floats(-1e100, 1e100).filter(lambda x: x == 0 or abs(x) > 1e-100), min_size=1, max_size=40),
    st.integers(-300, 300),
    st.integers(2, 8),
)
def test_powers_of_two_scale_the_cuts(values, exponent, max_bins):
    mapper = BinMapper.fit(column(values), max_bins=max_bins)
    scaled = BinMapper.fit(np.ldexp(column(values), exponent), max_bins=max_bins)
    assert scaled.cut_values.tolist() == np.ldexp(mapper.cut_values, exponent).tolist()


# ---- dtypes

REALS = ["f2", ">f2", "f4", ">f4", "f8", ">f8", "g"]
INTEGERS = ["i1", "u1", "i2", ">i2", "u2", "i4", ">i4", "u4", "i8", ">i8", "u8"]


@pytest.mark.parametrize("dtype", REALS + INTEGERS)
@pytest.mark.parametrize("max_bins", [7, 255])
def test_equal_values_have_equal_cuts_and_codes_in_any_dtype(dtype, max_bins):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 100, (400, 3)).astype(np.float64)
    units = rng.integers(0, 4, 400)
    for integer_weights in (None, units):
        expected = BinMapper.fit(X, max_bins=max_bins, integer_weights=integer_weights)
        mapper = BinMapper.fit(X.astype(dtype), max_bins=max_bins, integer_weights=integer_weights)
        assert_same(mapper, expected)
        assert (mapper.transform(X.astype(dtype)).codes == expected.transform(X).codes).all()


def test_bool_is_zero_and_one():
    X = np.array([[True], [False], [True]])
    assert BinMapper.fit(X).cuts(0).tolist() == [0.5]
    assert BinMapper.fit(X).transform(np.tile(X, (100, 1))).codes.tolist() == [[2, 1, 2] * 100]


@untimed
@given(st.lists(st.floats(width=32), min_size=1, max_size=40), st.integers(2, 8))
def test_float32_equals_its_float64(values, max_bins):
    X = column(values, np.float32)
    mapper = BinMapper.fit(X, max_bins=max_bins)
    assert_same(mapper, BinMapper.fit(X.astype(np.float64), max_bins=max_bins))
    assert mapper.transform(X).codes.tolist() == mapper.transform(X.astype(np.float64)).codes.tolist()


@pytest.mark.parametrize(("dtype", "n"), [("u1", 256), ("i1", 300), ("u2", 65536), ("i2", 70000), (">i2", 65536)])
def test_narrow_integers_by_table_equal_float64(dtype, n):
    info = np.iinfo(dtype)
    X = np.random.default_rng(2).integers(info.min, info.max + 1, (n, 2)).astype(dtype)
    X[0], X[1] = info.min, info.max
    mapper = BinMapper.fit(X, max_bins=50)
    assert_same(mapper, BinMapper.fit(X.astype(np.float64), max_bins=50))
    other = BinMapper.fit(np.random.default_rng(3).normal(0, 0.3 * info.max, (500, 2)))  # fractional cuts
    for m in (mapper, other):
        codes = m.transform(X).codes
        assert (codes == m.transform(X.astype(np.float64)).codes).all()
    assert mapper.transform(X).codes[:, :2].tolist() == [[1, 50], [1, 50]]


def test_large_integers_are_compared_in_float64():
    X = column([2**24, 2**24 + 1, 2**53 - 1, -(2**24) - 1, -(2**24)], np.int64)
    assert BinMapper.fit(X).transform(X).codes.tolist() == [[3, 4, 5, 1, 2]]
    X = column([2**53, 2**53 + 1, 2**53 + 2], np.int64)  # the middle one rounds to the first
    mapper = BinMapper.fit(X)
    assert mapper.cuts(0).tolist() == [2.0**53 + 2]
    assert mapper.transform(X).codes.tolist() == [[1, 1, 2]]
    X = column([0, 2**63, 2**64 - 1], np.uint64)
    assert BinMapper.fit(X).transform(X).codes.tolist() == [[1, 2, 3]]


def test_long_doubles_beyond_float64_are_infinite():
    X = column([0, 1, 2], np.longdouble)
    X[2] = np.longdouble(LARGEST) * 4  # infinite already where long double is float64
    mapper = BinMapper.fit(X)
    assert mapper.cuts(0).tolist() == [0.5, 0.5 + LARGEST / 2]
    assert mapper.transform(X).codes.tolist() == [[1, 2, 3]]


# ---- layouts, blocks, threads


@pytest.fixture
def small_blocks(monkeypatch):
    """Two columns of 300 float64 in a block."""
    monkeypatch.setattr(gpuboost.binning.columns, "_BLOCK_BYTES", 5000)


def layouts(X):
    """Arrays equal to X: C, Fortran, strided, reversed, transposed slice, and write-protected."""
    n, f = X.shape
    strided = np.zeros((2 * n, 3 * f), dtype=X.dtype)
    strided[::2, ::3] = X
    frozen = X.copy(order="F")
    frozen.setflags(write=False)
    yield from (X.copy(order="C"), X.copy(order="F"), strided[::2, ::3], frozen)
    yield X[::-1, ::-1].copy()[::-1, ::-1]
    yield X[:, ::-1].copy(order="F")[:, ::-1]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", ">f8"])
def test_the_layout_does_not_matter_and_input_is_not_written(dtype):
    rng = np.random.default_rng(4)
    X = rng.integers(0, 200, (300, 7)).astype(dtype)
    if X.dtype.kind == "f":
        X[rng.random(X.shape) < 0.1] = NAN
    units = rng.integers(0, 3, 600)[::2]
    rows = rng.integers(0, 300, 280)
    expected = [BinMapper.fit(X, max_bins=30, integer_weights=w) for w in (None, units)]
    codes = np.array(codes_by_hand(X, expected[0]))
    for Y in layouts(X):
        before = Y.tobytes()
        mapper = BinMapper.fit(Y, max_bins=30)
        assert_same(mapper, expected[0])
        assert_same(BinMapper.fit(Y, max_bins=30, integer_weights=units), expected[1])
        assert (mapper.transform(Y).codes == codes).all()
        assert (mapper.transform(Y, rows=rows).codes == codes[:, rows]).all()
        assert Y.tobytes() == before


def test_memory_maps(tmp_path):
    X = np.random.default_rng(5).normal(size=(100, 3))
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    mapper = BinMapper.fit(mapped, max_bins=20)
    assert_same(mapper, BinMapper.fit(X, max_bins=20))
    codes = mapper.transform(mapped).codes
    assert (type(codes), codes.flags.c_contiguous) == (np.ndarray, True)
    assert (codes == mapper.transform(X).codes).all()


@pytest.mark.usefixtures("small_blocks")
def test_threads_do_not_matter():
    X = np.random.default_rng(6).normal(size=(300, 9))
    assert_same(BinMapper.fit(X, max_bins=20, n_threads=3), BinMapper.fit(X, max_bins=20))


@pytest.mark.usefixtures("small_blocks")
def test_a_backend_may_bring_its_own_primitive():
    X = np.asfortranarray(np.random.default_rng(7).normal(size=(300, 5)).astype(np.float32))
    mapper = BinMapper.fit(X, max_bins=10)
    shapes = []

    def primitive(values, cut_values, cut_offsets, out):
        assert (values.dtype, cut_values.dtype, cut_offsets.dtype, out.dtype) == ("f8", "f8", "i8", "u1")
        assert values.flags.c_contiguous
        assert out.flags.c_contiguous
        assert (cut_offsets[0], cut_offsets[-1], len(cut_offsets)) == (0, len(cut_values), len(values) + 1)
        shapes.append(values.shape)
        bin_block(values, cut_values, cut_offsets, out)

    codes = mapper.transform(X, bin_block=primitive).codes
    assert shapes == [(2, 300), (2, 300), (1, 300)]
    assert codes.tolist() == codes_by_hand(X, mapper)


@pytest.mark.slow
def test_a_matrix_is_never_copied_whole():
    X = np.random.default_rng(8).integers(0, 256, (20000, 500), dtype=np.uint8)  # 10 MB, or 80 MB as float64
    spare = gpuboost.binning.columns._BLOCK_BYTES + (2 << 20)
    tracemalloc.start()
    try:
        mapper = BinMapper.fit(X, max_bins=100)
        assert tracemalloc.get_traced_memory()[1] < spare
        tracemalloc.reset_peak()
        mapper.transform(X)
        assert tracemalloc.get_traced_memory()[1] < X.nbytes + spare
    finally:
        tracemalloc.stop()


# ---- bad input


@pytest.mark.parametrize("max_bins", [1, 256, 0, -5, 10.0, "10", None])
def test_max_bins_out_of_range(max_bins):
    with pytest.raises(ValueError, match=r"max_bins must be an integer in 2 \.\. 255, got"):
        BinMapper.fit(np.zeros((3, 1)), max_bins=max_bins)


@pytest.mark.parametrize("max_bins", [2, MAX_VALUE_BINS, np.int64(7)])
def test_max_bins_is_kept(max_bins):
    X = column(range(1000))
    mapper = BinMapper.fit(X, max_bins=max_bins)
    assert mapper.n_cuts.tolist() == [max_bins - 1]
    assert mapper.transform(X).codes.max() == max_bins


@pytest.mark.parametrize("dtype", ["O", "c16", "M8[s]", "m8[s]", "U3", "S3"])
def test_unusable_dtypes(dtype):
    mapper = BinMapper.fit(np.zeros((3, 1)))
    for call in (BinMapper.fit, mapper.transform):
        with pytest.raises(TypeError, match=r"X must have .* dtype, got "):
            call(np.zeros((3, 1), dtype=dtype))


def test_wrong_shapes():
    mapper = BinMapper.fit(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="X has 3 columns, but the bins were fitted on 2"):
        mapper.transform(np.zeros((4, 3)))
    for call in (BinMapper.fit, mapper.transform):
        with pytest.raises(ValueError, match=r"2-D .* got shape \(3,\)"):
            call(np.zeros(3))


@pytest.mark.parametrize(
    ("units", "error", "message"),
    [
        (np.array([1, 2]), ValueError, r"shape \(3,\)"),
        (np.array([1, -2, 3]), ValueError, "not be negative, got -2"),
        (np.array([1.0, 2.0, 3.0]), TypeError, "integer dtype .* got float64"),
        (np.array([1, 2, 3], dtype=np.uint64), TypeError, "integer dtype .* got uint64"),
        (np.array([2**62, 2**62, 1]), ValueError, r"at most 2\*\*63 - 1, got 9223372036854775809"),
    ],
)
def test_bad_weights(units, error, message):
    with pytest.raises(error, match=message):
        BinMapper.fit(np.zeros((3, 1)), integer_weights=units)
