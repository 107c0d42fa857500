"""Questions about engines and methods: compare runs, audit an engine, bench mitigation methods, check a collection."""
