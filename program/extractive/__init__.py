"""The four stages without an LM: nothing is downloaded, nothing can be hallucinated."""

EXTRACTIVE_CUT = 4  # the extractive scores are calibrated so that this is their decision threshold
