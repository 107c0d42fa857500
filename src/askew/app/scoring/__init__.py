"""From files to values: documents counted, measures computed."""
