"""Build the docs: ``sphinx-build -W -n -b html docs build/docs``."""

project = "distract"
extensions = ["myst_parser"]
html_theme = "furo"
myst_heading_anchors = 3
