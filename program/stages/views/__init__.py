"""Ways of asking for evidence, and how their votes become agreement."""
