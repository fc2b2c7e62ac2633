"""Prints traces as logs of Kafka's broker or Java clients, which `groupstorm import` reads again."""
