"""The training step and the loop around it; prediction over a whole split."""
