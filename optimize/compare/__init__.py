"""Programs side by side on the same cases: tables, a page, and what makes it fair."""
