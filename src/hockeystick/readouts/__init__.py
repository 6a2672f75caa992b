"""What can be read off a privacy curve: trade-off, summaries, Gaussian DP."""
