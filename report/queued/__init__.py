"""What an evaluation under queued dispatch leaves: rows, summaries, a figure, the report."""
