"""The text scores: overlap, and those that need models or an index."""
