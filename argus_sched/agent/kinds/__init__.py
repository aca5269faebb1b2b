"""One module per kind of check: what it looks at and how that is graded."""
