"""Where log records come from: one module per technology."""
