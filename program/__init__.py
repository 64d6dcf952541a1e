"""The four stages and what runs them."""
