"""The basis of askew: errors, texts, lexicons, plugins, the store of steps and its workers."""
