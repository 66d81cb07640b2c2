"""Fitted models as ONNX, C and Python source."""
