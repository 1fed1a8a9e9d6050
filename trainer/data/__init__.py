"""The dataset directory as the trainer reads it: manifest, blocks, the order of rows, the input."""
