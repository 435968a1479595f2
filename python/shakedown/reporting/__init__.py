"""The output of figures: tables on a terminal, charts, and the report's page."""
