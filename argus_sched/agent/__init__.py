"""The monitoring agent: reads container logs and one database lock, grades, tells. Imports nothing of scheduling."""
