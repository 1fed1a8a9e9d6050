"""How good a trained model is: every row of a split once, by slices too, and whether it passes.

`predict` runs the model; `metrics`, `curves`, `slices` and `gate` work on arrays alone; `report`
draws; `evaluate` puts them together and writes the evaluation directory.
"""
