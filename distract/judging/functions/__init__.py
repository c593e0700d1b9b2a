"""Python functions as judges: what they declare, what they take and return, and how they are called."""
