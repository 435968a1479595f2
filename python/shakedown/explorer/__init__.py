"""A local page with live controls over predictions and simulations: what `shakedown explore` serves."""
