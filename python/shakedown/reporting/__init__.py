"""How figures are shown: tables on a terminal, charts, and the page."""
