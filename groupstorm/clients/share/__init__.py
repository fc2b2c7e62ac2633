"""A share consumer's client side (KIP-932): its membership in a share group."""
