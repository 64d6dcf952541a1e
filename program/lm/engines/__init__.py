"""One file an LM: each gives a Backend."""
