"""What readers are built of: what a reader is, rows of tables, texts of documents, cases of notes."""
