"""What the agent remembers between two passes."""
