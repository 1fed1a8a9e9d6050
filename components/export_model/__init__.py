"""A trained model as a file that serves: preprocessing inside, compared before it appears.

`signatures` says what a request looks like, `formats` writes files, `parity` reloads them in a
clean process, `export` lets the artifact appear only if the outputs agree.
"""
