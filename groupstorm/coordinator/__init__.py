"""The group coordinator's decisions over injected time: what all kinds of group share, a folder per kind."""
