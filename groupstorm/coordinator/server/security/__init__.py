"""Who may connect, and what others on the network can read: TLS, and SASL with PLAIN or SCRAM.

`listener` says what a listener demands, `gate` keeps a connection from the broker until its client has proved
who it is, `mechanisms` and `scram` are the conversations, `users` reads who there is, `connection` carries it
all out on sockets. Everything but `connection` is without sockets and clocks.
"""
