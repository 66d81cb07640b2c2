"""Model files of plain tensors."""
