"""Players, scenarios, seeds and episodes: contests, results, statistics, the weight search."""
