"""Picks demos and cuts, compares prompts."""
