"""Text of strangers in Markdown of ours: it stays text, whatever it looks like."""


def inert(text: str) -> str:
    """One line in which no tag and no link of the text comes to life."""
    quoted = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("](", "]\\(")
    return " ".join(quoted.split())


def cell(text: str) -> str:
    """The same for a cell of a table."""
    return inert(text).replace("|", "\\|")
