"""What programs left behind, and what it says about them."""
