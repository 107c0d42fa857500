"""How often each document names each group: a plain reference and a compiled scan that agrees with it."""
