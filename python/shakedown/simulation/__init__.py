"""From an estimated scenario and a load to the core's simulation, and from its report to rows."""
