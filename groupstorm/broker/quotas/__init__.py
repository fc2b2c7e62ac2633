"""Client quotas (KIP-13, KIP-124, KIP-219, KIP-546): who may send and fetch how many bytes a second.

`entities` are the quotas as administrators set and find them, `rates` measures, and `client_quotas` says how
long the connection of a client is muted.
"""
