"""From a log to a first pack: what was seen, the triggers behind it, and the YAML."""
