"""The explorer: web pages, a REST service, and tools for a language model."""
