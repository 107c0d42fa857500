"""The store of finished steps, and the workers that run them."""
