"""The fifth stage: whether each answer sentence is supported by what it cites."""
