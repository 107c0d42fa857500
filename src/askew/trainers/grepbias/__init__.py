"""Relevance without a preference for a gender: GrepBiasIR, frozen encoders with linear heads, and fine-tuned ones."""
