"""The paper's figures from run folders, drawn with matplotlib (`pip install 'arise-rl[figures]'`)."""

FORMATS = ("pdf", "svg", "png")
