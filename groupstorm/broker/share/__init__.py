"""Share groups on the broker (KIP-932): the surroundings of `groupstorm.share_records`, which decides.

That room knows a topic by its id, as text: a topic that is made again under its name is another one.
"""
