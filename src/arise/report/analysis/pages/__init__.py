"""The pages of an analysis in `arise view`, in the look of the dashboard and with its parts."""
