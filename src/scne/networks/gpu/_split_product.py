"""Products in single precision on an NVIDIA GPU's matrix units; importing this needs Triton."""

# Triton has no types, and takes none for the arguments of its kernels.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl


@triton.jit
def _upper(a):
    """The part of a number that a matrix unit takes: its first 11 bits."""
    # Rounded, not cut off: what is left is then of either sign, and its own rounding leaves no bias in long sums.
    return ((a.to(tl.int32, bitcast=True) + 4096) & -8192).to(tl.float32, bitcast=True)


@triton.jit
def split_product(a, b, total):
    """A B + total, with factors split into two of 11 bits each: all but the last bit or two of a float32 product.

    Triton's own "tf32x3" does the same and looks for infinite factors besides, which takes half as long again.
    """
    upper, other = _upper(a), _upper(b)
    total = tl.dot(a - upper, other, total, input_precision="tf32")
    total = tl.dot(upper, b - other, total, input_precision="tf32")
    return tl.dot(upper, other, total, input_precision="tf32")
