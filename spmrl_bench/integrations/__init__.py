"""A trained parser inside the libraries that people have their text in."""
