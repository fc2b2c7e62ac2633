"""A trace along its time: what every member did when, as a picture, for Perfetto, as OpenTelemetry spans.

`members` follows the members and the state of a group row by row; everything else draws what it says.
"""
