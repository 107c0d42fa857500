"""One self-contained page: charts as SVG, tables as HTML and LaTeX; a text from elsewhere steers nothing in it."""
