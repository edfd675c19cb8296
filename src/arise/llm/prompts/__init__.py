"""The prompts: templates and schemas as files, their rendering, and the shape that a reply must have."""
