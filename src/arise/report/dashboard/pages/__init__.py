"""One module a page: queries on the run store in, figures and facts for a template out."""
