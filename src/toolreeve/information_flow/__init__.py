"""Information flow on the road: sessions, file labels, and the stage."""
