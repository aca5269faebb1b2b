"""What the lines of a log mean: pure, from bytes to events."""
