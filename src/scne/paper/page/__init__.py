"""The page of the paper's results."""
