"""What the values of a column mean, decided over the whole input.

Each piece of the input is looked at on its own (`look` for text, `typed` for declared types); what
it says is a `Profile`, and profiles add up. `decide` makes a `Plan` of the sum, which `cast`
follows in each piece. So a type depends neither on the order of rows nor on where pieces end.
"""
