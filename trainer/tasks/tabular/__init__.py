"""Tables: numbers normalised, categories embedded, missing values told apart, an MLP on top."""
