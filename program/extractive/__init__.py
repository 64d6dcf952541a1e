"""The four stages without an LM: nothing is downloaded, and an answer holds only what the note says."""

EXTRACTIVE_CUT = 4  # the extractive scores are calibrated so that this is their decision threshold
