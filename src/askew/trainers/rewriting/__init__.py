"""Train text-to-text models and compare their output with the target texts."""
