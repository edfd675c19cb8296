"""One module per page: from queries and facts of a run to figures and values for a template."""
