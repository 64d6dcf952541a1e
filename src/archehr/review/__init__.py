"""The review page: a clinician corrects what a run said, and the corrections become labels."""
