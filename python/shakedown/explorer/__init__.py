"""A local page with live controls over predictions and simulations, served by `shakedown explore`."""
