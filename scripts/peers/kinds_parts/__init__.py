"""The parts of kinds.py."""
