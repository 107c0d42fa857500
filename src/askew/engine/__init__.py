"""The store of finished steps, and the code that runs the steps and resumes them after an interruption."""
