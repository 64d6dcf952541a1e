"""What the commands share: their options, what they print, and how they end."""
