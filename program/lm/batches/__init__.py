"""Batch services of providers: many requests in one job, answered within a day, at half the price."""
