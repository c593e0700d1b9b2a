"""The studies, one module each under the name of its command."""
