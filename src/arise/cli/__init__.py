"""The `arise` command: one module per subcommand. Heavy imports stay inside the commands."""
