"""The four stages without an LM: nothing is downloaded, nothing can be hallucinated."""
