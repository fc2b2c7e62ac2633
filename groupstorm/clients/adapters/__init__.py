"""Our assignors, and your own, inside other client libraries' consumers.

* `groupstorm.clients.adapters.aiokafka`: eager assignors for aiokafka's ``AIOKafkaConsumer``;
* `groupstorm.clients.adapters.kafka_python`: eager and cooperative ones for kafka-python's ``KafkaConsumer``.

Each needs its library (extra ``kafka``); `role` is what both do.
"""

from __future__ import annotations
