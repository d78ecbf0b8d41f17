"""One vector instruction that numba does not write by itself.

LLVM vectorises ``out[i, c] += q[j, c]`` over the class axis only behind a test that the two rows do not overlap, and for a
dozen classes the test costs as much as the addition. Here the vector operation is spelled out.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

LANES = 4
"""Entries that `add_four` adds at once."""


@intrinsic
def add_four(typing_context: Any, out: Any, i: Any, q: Any, j: Any) -> Any:
    """``out[i:i + 4] += q[j:j + 4]`` for contiguous 1-D int32 arrays that do not overlap; i and j are uint64.

    No bounds are checked.
    """
    signature = types.void(out, types.uint64, q, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(ir.IntType(32), LANES)

        def pointer(array: int, index: int) -> Any:
            made = context.make_array(signature.args[array])(context, builder, arguments[array])
            return builder.bitcast(builder.gep(made.data, [arguments[index]]), vector.as_pointer())

        target, source = pointer(0, 1), pointer(2, 3)
        added = builder.add(builder.load(target, align=4), builder.load(source, align=4))
        builder.store(added, target, align=4)
        return context.get_dummy_value()

    return signature, generate
