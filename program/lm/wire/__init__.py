"""What servers do in the field, and what is made of it: refusals, odd replies, other models, outages."""
