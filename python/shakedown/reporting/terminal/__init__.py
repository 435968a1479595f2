"""What people see on a terminal: tables and figures with units."""
