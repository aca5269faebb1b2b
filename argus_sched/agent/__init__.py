"""The monitoring agent: reads logs and one database lock, grades, tells. Imports nothing of scheduling."""
