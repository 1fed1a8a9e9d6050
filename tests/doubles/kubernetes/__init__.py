"""A Kubernetes API whose pods really run, as Docker containers; see cluster.py."""
