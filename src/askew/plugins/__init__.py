"""What can be plugged in, and the one door by which built-ins and strangers come in."""
