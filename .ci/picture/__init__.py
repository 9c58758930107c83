"""Draw the animated pictures of the documentation."""
