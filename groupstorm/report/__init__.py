"""What people look at: tables of figures, a trace told as a story."""
