"""Access control lists and the decisions about them, as Kafka's StandardAuthorizer makes them.

`acls` are the rules and the filters that find them, `authorizer` decides, `principals` says who a client is.
Nothing here knows requests: `groupstorm.broker.apis.rights` says what each API needs.
"""
