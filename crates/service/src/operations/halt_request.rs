//! Requests to halt or resume, their requesters and their previews.

use countersign_domain::operations::halt::Halt;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HaltRequest {
    /// Sets both halts to these values.
    Set(Halt),
    /// Sets the halts that are true here and leaves the other one.
    Stop(Halt),
    /// Lifts the halts that are true here and leaves the other one.
    Lift(Halt),
}

/// The result of a request, as the preview shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HaltPreview {
    /// The request is stored, and another person has to make the same one.
    Asked,
    Done,
}

impl HaltRequest {
    pub(super) fn halt(&self) -> &Halt {
        let (Self::Set(halt) | Self::Stop(halt) | Self::Lift(halt)) = self;
        halt
    }

    /// Returns the same request with another reason.
    pub(super) fn saying(&self, reason: String) -> Self {
        let halt = Halt { reason, ..self.halt().clone() };
        match self {
            Self::Set(_) => Self::Set(halt),
            Self::Stop(_) => Self::Stop(halt),
            Self::Lift(_) => Self::Lift(halt),
        }
    }

    pub(super) fn next(&self, now: &Halt) -> Halt {
        match self {
            Self::Set(halt) => halt.clone(),
            Self::Stop(halt) => Halt {
                proposing: now.proposing || halt.proposing,
                verifying: now.verifying || halt.verifying,
                reason: halt.reason.clone(),
            },
            Self::Lift(halt) => Halt {
                proposing: now.proposing && !halt.proposing,
                verifying: now.verifying && !halt.verifying,
                reason: halt.reason.clone(),
            },
        }
    }
}
