"""Hugging Face models in this process: prompts packed into forward passes, answers decoded side by side."""
