"""Running a program over cases: folder, journal, report."""
