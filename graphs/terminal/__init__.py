"""The two programs, `python -m graphs` and `python -m graphs chat`, and what they share."""
