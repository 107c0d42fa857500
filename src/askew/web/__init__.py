"""The explorer in a browser, the same as a REST service, and as tools for a language model."""
