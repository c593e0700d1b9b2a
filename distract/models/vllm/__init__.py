"""Hugging Face models run by vLLM."""
