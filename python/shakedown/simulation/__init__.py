"""From an estimated scenario and a load to the core's simulation, and back to rows."""
