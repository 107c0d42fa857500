"""A self-contained report page with SVG charts and tables in HTML and LaTeX. Texts of unknown origin are escaped."""
