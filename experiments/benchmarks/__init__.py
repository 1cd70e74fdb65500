"""Speed, in pairs: start with `contests.py`, which says what is compared."""
