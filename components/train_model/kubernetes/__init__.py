"""Training on a Kubernetes cluster: the step makes an Indexed Job, follows it, and cleans up.

`component` is the KFP face and `step` its work; `manifest` says what is made, `cluster` talks to
the API, `look` reads a verdict out of what the API says, `follow` waits for it, `logs` passes the
chief's lines on. The workers are `python -m trainer`, which find each other by the Job's index.
"""
