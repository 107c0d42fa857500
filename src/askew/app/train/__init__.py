"""Train models, and read what they are trained on."""
