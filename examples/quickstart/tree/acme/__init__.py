"""A small agent framework."""
