"""Interfaces: the command line, web pages, REST, MCP. They parse, call the library and show what it returns."""
