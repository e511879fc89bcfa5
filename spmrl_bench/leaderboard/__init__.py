"""Result records, the tables made from them, and published figures to set beside them."""
