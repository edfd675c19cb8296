"""Methods side by side: the same budget and seeds for each, run, measured and reported from their run folders."""
