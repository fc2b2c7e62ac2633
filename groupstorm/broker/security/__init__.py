"""Authentication and encryption: TLS, and SASL with PLAIN or SCRAM.

`listener` describes what a listener wants of its clients. `authenticator` lets a connection's requests pass
to the broker when its client has authenticated, by PLAIN or SCRAM. `users` reads names and passwords and
keeps the credentials, and `connection` carries all of it out on sockets. Only `connection` knows sockets and
clocks.
"""
