"""What a run leaves behind: journal, samples, metrics with intervals, tables, and the HTML report. Knows no model."""
