"""The command line and the Python face: options to jobs, results to exit codes. One file a command."""
