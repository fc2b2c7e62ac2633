"""A trace along its time: a picture, lanes for Perfetto, OpenTelemetry spans, all drawn by `members`."""
