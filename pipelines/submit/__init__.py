"""Pipelines on KFP and Vertex AI: sent, followed, cancelled; `castell submit|status|cancel|logs`.

`command` prepares what is sent; `platform` is what a platform can do; `vertex` and `kfp` do it
through Google's and Kubeflow's own clients; `follow` waits; `images` finds digests; `show` records
what a client would send.
"""
