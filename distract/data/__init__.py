"""Cases: data sets read and written, their formats and format requirements."""
