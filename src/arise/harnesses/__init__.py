"""Agent harnesses as data, with their installation and launch; each calls the policy through the endpoint."""
