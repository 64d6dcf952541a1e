"""report.html: what needs a look, and every answer beside its note; above 200 cases an index over pages of 50."""

from archehr.program.run.report.write import write_report as write_report
