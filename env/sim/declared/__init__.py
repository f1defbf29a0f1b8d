"""What is declared of an episode: its cluster, its workflows, and the rules of its world."""
