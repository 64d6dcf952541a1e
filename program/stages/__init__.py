"""The stages: signature, module and rule of each, and what they share."""
