"""What `arise analyze` leaves behind: one JSON document, and a screen, a page and packages made from it."""
