"""Small honest servers that stand in for platforms which cannot be reached from tests."""
