"""A real gateway for your tests, and a reviewer who decides by code.

`countersign_gateway` is a fixture of pytest, there as soon as this package is installed with its extra `testing`.
Without pytest: `with Gateway.start() as gateway: …`.
"""

from ._program import NoGateway
from ._reviewer import NotCounted, Reviewer
from ._running import Gateway

__all__ = ["Gateway", "NoGateway", "NotCounted", "Reviewer"]
