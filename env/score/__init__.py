"""What an episode came to: metrics, bounds, the optimum, rewards, the greedy score, rollouts."""
