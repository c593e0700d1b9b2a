"""The studies, one folder for each command."""
