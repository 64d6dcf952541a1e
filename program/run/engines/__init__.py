"""How the cases of a run are answered: on threads or processes here, by a provider's batches, or on a cluster."""
