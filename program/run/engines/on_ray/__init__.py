"""What the ray engine is made of: the connection, the desk that actors share, what they read and how they answer."""
