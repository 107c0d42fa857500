"""The basic types of askew: errors, measures, lexicons, texts, tables. Imports no other package of askew."""
