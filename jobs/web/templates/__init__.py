"""The pages of templates."""
