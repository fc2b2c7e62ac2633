"""Kubernetes manifests, read into what a storm needs to know of a rollout: text in, scenario out."""
