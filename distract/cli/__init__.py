"""The command line and the Python API: turn options into jobs and results into exit codes. One file per command."""
