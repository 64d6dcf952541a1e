"""What a case is, and how it is read and written. Imports no other room."""
