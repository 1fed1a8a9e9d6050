"""After the export: the model becomes a version in Vertex AI's Model Registry.

`component` is the KFP face, `step` describes the artifact, `register` speaks to the registry.
"""
