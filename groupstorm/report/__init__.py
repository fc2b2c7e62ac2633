"""Tables of figures, stories of traces, pictures and pages for people."""
