"""Facts derived from a run, each computed in one place and read by screen, page, report and export."""
