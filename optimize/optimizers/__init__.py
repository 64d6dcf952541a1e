"""One file an optimiser: each compiles a stage into prompts to choose from."""
