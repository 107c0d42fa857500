"""The plugin interfaces, and the registry that loads both built-in and third-party plugins."""
