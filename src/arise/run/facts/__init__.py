"""Facts derived from a run, each computed once and shared by screen, page, report and export."""
