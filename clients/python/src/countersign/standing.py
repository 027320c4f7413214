"""The former name of `countersign.resources`, kept for one release."""

from __future__ import annotations

import warnings

from .resources import (
    Amendment as Amendment,
)
from .resources import (
    Amendments as Amendments,
)
from .resources import (
    Attempt as Attempt,
)
from .resources import (
    Count as Count,
)
from .resources import (
    Delivery as Delivery,
)
from .resources import (
    DeliveryPage as DeliveryPage,
)
from .resources import (
    Endpoint as Endpoint,
)
from .resources import (
    Endpoints as Endpoints,
)
from .resources import (
    Evidence as Evidence,
)
from .resources import (
    Halt as Halt,
)
from .resources import (
    Health as Health,
)
from .resources import (
    Interrupt as Interrupt,
)
from .resources import (
    InterruptAnswer as InterruptAnswer,
)
from .resources import (
    Judged as Judged,
)
from .resources import (
    Lifting as Lifting,
)
from .resources import (
    Passkey as Passkey,
)
from .resources import (
    Passkeys as Passkeys,
)
from .resources import (
    PolicyActive as PolicyActive,
)
from .resources import (
    Rejection as Rejection,
)
from .resources import (
    RejectionPage as RejectionPage,
)
from .resources import (
    ReplayPage as ReplayPage,
)
from .resources import (
    Resolved as Resolved,
)
from .resources import (
    Revoked as Revoked,
)
from .resources import (
    Secret as Secret,
)
from .resources import (
    Standing as Standing,
)

warnings.warn("import countersign.resources instead of countersign.standing", DeprecationWarning, stacklevel=2)
