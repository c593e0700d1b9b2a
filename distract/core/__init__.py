"""The engine: records, plans, the run loop, the store of replies, run folders and the registry of plug-ins."""
