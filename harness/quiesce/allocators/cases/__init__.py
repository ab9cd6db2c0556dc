"""Cases: programs of operations that state what they need, what they must show, and which fault they exist for."""
