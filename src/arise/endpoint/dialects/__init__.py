"""The wire formats that harnesses speak, each a pure translation both ways."""
