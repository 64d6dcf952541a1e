"""What a short question asks: the things it names, and which note sentences speak of them."""
