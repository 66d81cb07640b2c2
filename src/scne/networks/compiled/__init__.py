"""What is faster compiled than in NumPy; NumPy does the same where nothing was compiled."""

from scne.networks.compiled._kernels import CompiledLayer, CompiledSteps, Kernels, compiled_kernels

__all__ = ["CompiledLayer", "CompiledSteps", "Kernels", "compiled_kernels"]
