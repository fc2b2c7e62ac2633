"""Assignors of this package, and third parties', inside other client libraries' consumers.

* `groupstorm.clients.adapters.aiokafka`: eager assignors for aiokafka's ``AIOKafkaConsumer``;
* `groupstorm.clients.adapters.kafka_python`: eager and cooperative ones for kafka-python's ``KafkaConsumer``.

Each needs its library (extra ``kafka``); `role` is their common part.
"""

from __future__ import annotations
