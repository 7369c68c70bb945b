"""Parts of edits.py."""
