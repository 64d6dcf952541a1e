"""Fit the program without an LM: on gold labels, on reviewed cases, or on what a run with an LM said."""
