"""The official ArchEHR-QA 2026 scores and their intervals. Knows nothing of LMs."""
