"""What is faster compiled than in NumPy; NumPy does the same where nothing was compiled."""

from scne.networks.compiled._library import Kernels, compiled_kernels
from scne.networks.compiled._outputs import CompiledLayer
from scne.networks.compiled._steps import CompiledSteps

__all__ = ["CompiledLayer", "CompiledSteps", "Kernels", "compiled_kernels"]
