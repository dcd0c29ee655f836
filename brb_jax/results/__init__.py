"""What a run leaves behind: journal, samples, metrics with intervals, tables, HTML report. Knows no model."""
