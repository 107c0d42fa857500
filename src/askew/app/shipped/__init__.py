"""The trained models that askew ships: their task, training data and measured quality."""
