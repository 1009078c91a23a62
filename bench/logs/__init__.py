"""What logs cost: taking lines in, following, reading, searching and keeping them."""
