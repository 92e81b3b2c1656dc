"""What befalls the servers of a history: they are killed and started again, or held and let go on."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from tests.histories.history import Recorder
from tests.histories.servers import Server


class Faults:
    """Kills and holds of servers, at times that the seed chooses."""

    def __init__(self, seed: str, servers: Sequence[Server], recorder: Recorder) -> None:
        self._chance = random.Random(f"{seed} faults")
        self._servers = servers
        self._recorder = recorder

    def step(self) -> None:
        """One fault, behind a time without. All servers run again afterwards."""
        time.sleep(self._chance.uniform(0.2, 1.5))
        server = self._chance.choice(self._servers)
        if self._chance.random() < 0.4:
            server.kill()
            time.sleep(self._chance.uniform(0, 0.5))
            server.start()
            self._recorder.fault("kill")
            return
        server.hold()
        try:
            time.sleep(self._chance.choice((0.05, 0.3, 1.0, 2.5)))
        finally:
            server.go_on()
        self._recorder.fault("pause")
