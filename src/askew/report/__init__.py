"""One model of tables, figures and pages, rendered as HTML, CSV, LaTeX and JSON."""
