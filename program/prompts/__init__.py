"""Prompts as data: program files, gold demos, and the messages as sent."""
