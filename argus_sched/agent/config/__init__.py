"""Settings and packs: YAML to frozen values, with every problem by file, line and path."""
