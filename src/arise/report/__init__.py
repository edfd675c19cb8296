"""Reports from finished records: dashboard, figures, comparisons, exports. Never imports the training loop."""
