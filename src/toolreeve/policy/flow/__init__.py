"""Information flow: who vouches for the values that decide what a call does."""
