"""After the registration: a version answers at an endpoint of Vertex AI, first for a share.

`component` is the KFP face, `step` describes the artifact, `deploy` speaks to the endpoint (for
`castell traffic`, too: promotion and rollback), `traffic` computes shares.
"""
