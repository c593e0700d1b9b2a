"""Hugging Face models in this process: prompts packed into forwards, answers decoded side by side."""
