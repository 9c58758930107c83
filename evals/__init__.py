"""Measure with a real model: of the steps asked, how many were done, ticked falsely, or lost."""
