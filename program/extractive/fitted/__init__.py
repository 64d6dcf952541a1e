"""The fitted stages: what they see of a case, the models as plain arrays, and the files they are kept in."""
