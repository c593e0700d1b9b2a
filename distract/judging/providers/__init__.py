"""The providers of judges shipped with distract, one file each."""
