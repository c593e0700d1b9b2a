"""One file for each format of a data set."""
