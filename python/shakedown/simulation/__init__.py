"""From a priced scenario and a load to the core's simulation, and back to rows."""
