"""What is known of regions and of workflows that ran there, in one file; collectors fill it."""
