"""May this data be trained on? A gate that compares a dataset with itself and with a baseline.

`rules` says what is asked and how strictly; `reference` what rows are compared with; `scan` goes
over all rows once, taking `tally`s and `fingerprints`; `chance` says how much a figure may differ
by luck; `leakage` looks for features that give the label away; `cells`, `distributions` and `whole`
hold the rules, of which `judge` makes findings; `validate` puts it together; `picture` and `page`
draw. Clean data passes: a rule is broken only by what lies beyond its threshold *and* beyond
chance.
"""
