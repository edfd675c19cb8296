"""`arise judge check`: cases with known answers, agreement beyond chance, and advice."""
