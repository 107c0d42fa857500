"""Reading what people have: runs, judgements, queries and documents, in the formats they have them in."""
