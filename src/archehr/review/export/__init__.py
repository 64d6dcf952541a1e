"""Finished cases as labels that other programs learn from."""
