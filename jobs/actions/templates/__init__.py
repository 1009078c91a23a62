"""Actions on templates: save, delete, fill in and run them."""
