"""What people look at: tables of figures, and traces as stories."""
