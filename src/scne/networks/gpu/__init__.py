"""The search and the tuning on an NVIDIA GPU, as kernels that are recorded once and run again."""
