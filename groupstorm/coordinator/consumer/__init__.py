"""Groups of the consumer protocol (KIP-848): members with epochs, targets of the broker, reconciliation."""
