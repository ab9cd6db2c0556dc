"""What is counted of a process: a meter for each gauge, and what they have in common."""
