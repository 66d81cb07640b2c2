"""What libraries say when a device has no memory left."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that a device had no memory left."""
    return isinstance(error, MemoryError) or "out of memory" in str(error).lower()
