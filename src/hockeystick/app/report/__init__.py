"""What a reader holds in hand: a guarantee in words, and the receipt that lets others check it."""
