"""Two threads that need one API's schemas for the first time: each gets its class."""

from __future__ import annotations

import sys

import pytest

from tests.processes import run_process

#: A client's thread encodes a request while another client's thread decodes the same API's response.
PROGRAM = """
import sys
from threading import Barrier, Thread
from kio.schema.index import api_key_map, schema_name_map
from groupstorm.protocol.codec.schemas import request_type, response_types

sys.setswitchinterval(1e-6)  # as often as possible between the threads

def load(function, api_key, version, both):
    both.wait()
    function(api_key, version)
    loaded.append(function)

loaded = []
for api_key in (0, 1, 2, 3, 8, 9, 11):
    for version in schema_name_map[api_key_map[api_key]]:
        both = Barrier(2)
        arguments = api_key, version, both
        threads = [Thread(target=load, args=(each, *arguments)) for each in (request_type, response_types)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
print(loaded.count(request_type), loaded.count(response_types))
"""


@pytest.mark.slow
def test_a_request_and_a_response_of_one_api_are_loaded_at_once() -> None:
    ended = run_process([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert ended.stderr == ""
    requests, responses = map(int, ended.stdout.split())
    assert requests == responses > 70
