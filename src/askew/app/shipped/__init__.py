"""The trained models that askew ships: what each is for, what it was trained on, how well it does."""
