"""From verdicts to people: incidents, notices, messages, silences, and their delivery."""
