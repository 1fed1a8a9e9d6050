"""Text: words or pieces of words, by TensorFlow ops alone, into a small encoder."""
