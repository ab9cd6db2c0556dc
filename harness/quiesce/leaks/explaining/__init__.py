"""What a leak comes from: the line that asked, the object that keeps it, the cause of which others follow."""
