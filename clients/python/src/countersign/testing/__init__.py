"""A real gateway for your tests, and a reviewer who decides by code.

`countersign_gateway` is a pytest fixture. It is available once the package is installed with the extra `testing`.
Without pytest: `with Gateway.start() as gateway: …`.
"""

from ._program import NoGateway
from ._reviewer import NotCounted, Reviewer
from ._running import Gateway

__all__ = ["Gateway", "NoGateway", "NotCounted", "Reviewer"]
