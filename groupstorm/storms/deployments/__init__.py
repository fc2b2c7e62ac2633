"""Deployments: rollouts as Kubernetes' controllers do them, node drains, autoscalers."""
