"""The doors: what users pass becomes rows, or an error says why not."""
