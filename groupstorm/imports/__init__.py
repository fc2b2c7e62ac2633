"""From logs to a trace: `groupstorm import` reads what Kafka's brokers and clients logged about their groups.

Lines become observations (`templates`, one table per program), observations of several logs become one
sequence (`clocks`), and the sequence becomes rows (`timeline`), each of which says how it is known.
"""
