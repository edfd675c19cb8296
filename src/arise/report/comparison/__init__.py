"""Compare methods: run each with the same budget and seeds, measure the run folders and write a report."""
