"""The failover harness: real workers, real faults, and a verdict from the outside."""
