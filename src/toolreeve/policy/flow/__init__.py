"""Information flow: who vouches for the values that steer a call."""
