"""Rows and chips of this vendor, as tables."""
