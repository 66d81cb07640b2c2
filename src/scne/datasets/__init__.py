"""Data to try things on: the embedded sample."""

from scne.datasets._beijing import load_beijing_air

__all__ = ["load_beijing_air"]
