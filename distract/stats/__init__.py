"""The table of measures and their figures; intervals, exact tests, agreement and ratings on columns of numbers."""
