"""The command line: results to stdout, talk to stderr."""
