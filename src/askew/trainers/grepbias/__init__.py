"""Train relevance models without a gender preference on GrepBiasIR: linear heads on frozen encoders, or fine-tuning."""
