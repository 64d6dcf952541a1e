"""Stage 1 without an LM, in its steps: read the message, find its question, say who is asked about, put it plainly."""
