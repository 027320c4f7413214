//! Halts (the kill switch): their actors, times and reasons, and the quorum to lift them.
//!
//! Halting is safe, so one person can do it. Resuming is not. If it needs two people, the halt itself stores that, so
//! the rule cannot be weakened while the halt is active.

use serde::{Deserialize, Serialize};

use crate::identity::account::Account;
use crate::primitives::id::{AccountId, PrincipalId};
use crate::primitives::time::Timestamp;

#[cfg(test)]
mod tests;

/// The halted operations. Both may be halted.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Halt {
    /// Whether proposing and voting are halted.
    pub proposing: bool,
    /// Whether verifying is halted.
    pub verifying: bool,
    pub reason: String,
}

/// The number of people who must agree to lift a halt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub enum LiftQuorum {
    #[default]
    One,
    /// One person requests and another confirms.
    Two,
}

impl From<LiftQuorum> for u64 {
    fn from(needs: LiftQuorum) -> Self {
        match needs {
            LiftQuorum::One => 1,
            LiftQuorum::Two => 2,
        }
    }
}

impl TryFrom<u64> for LiftQuorum {
    type Error = &'static str;
    fn try_from(number: u64) -> Result<Self, Self::Error> {
        match number {
            1 => Ok(Self::One),
            2 => Ok(Self::Two),
            _ => Err("one or two people lift a halt"),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HaltRecord {
    pub by: PrincipalId,
    pub name: String,
    /// The time since which this applies.
    pub at: Timestamp,
    pub reason: String,
}

/// A request to lift a halt that needs a second person.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LiftRequest {
    /// The account or token that sent the request.
    pub by: PrincipalId,
    /// The person who sent the request.
    pub person: AccountId,
    /// The name of the person.
    pub name: String,
    /// The time.
    pub at: Timestamp,
    /// The reason.
    pub reason: String,
    /// Whether proposing would remain halted.
    pub proposing: bool,
    /// Whether verifying would remain halted.
    pub verifying: bool,
}

/// The active halts, their actors, and the rule to lift them. Absent if nothing is halted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActiveHalts {
    pub proposing: Option<HaltRecord>,
    pub verifying: Option<HaltRecord>,
    /// The number of people who must agree.
    pub lift_needs: LiftQuorum,
    /// The request of the first of two people.
    pub lifting: Option<LiftRequest>,
}

impl ActiveHalts {
    /// Returns the active halts after `halt` is set. An existing halt keeps its actor and time, and a pending request
    /// to lift is dropped. The quorum never decreases.
    pub fn after(before: Option<&Self>, halt: &Halt, stop: &HaltRecord, needs: LiftQuorum) -> Option<Self> {
        if !halt.proposing && !halt.verifying {
            return None;
        }
        // A repeated halt must not change who set it and when, because that decides who may lift it.
        let kept = |of: fn(&Self) -> &Option<HaltRecord>| before.and_then(|it| of(it).clone());
        let standing = |stands: bool, of: fn(&Self) -> &Option<HaltRecord>| {
            stands.then(|| kept(of).unwrap_or_else(|| stop.clone()))
        };
        Some(Self {
            proposing: standing(halt.proposing, |it| &it.proposing),
            verifying: standing(halt.verifying, |it| &it.verifying),
            // Otherwise one person could halt again with a lower quorum and then lift alone.
            lift_needs: needs.max(before.map_or(LiftQuorum::One, |it| it.lift_needs)),
            lifting: None,
        })
    }

    /// Returns the active halts with a request to lift. The actor of a halt that an older version set is unknown.
    pub fn asked(before: Option<&Self>, halt: &Halt, lifting: LiftRequest) -> Self {
        let unknown = |stands: bool| {
            stands.then(|| HaltRecord {
                by: lifting.by.clone(),
                // Older rows do not have the actor.
                name: String::new(),
                at: lifting.at,
                reason: halt.reason.clone(),
            })
        };
        let (proposing, verifying) = match before {
            Some(before) => (before.proposing.clone(), before.verifying.clone()),
            None => (unknown(halt.proposing), unknown(halt.verifying)),
        };
        Self { proposing, verifying, lift_needs: LiftQuorum::Two, lifting: Some(lifting) }
    }

    /// Returns the time of the oldest active halt.
    pub fn since(&self) -> Option<Timestamp> {
        [&self.proposing, &self.verifying].into_iter().flatten().map(|it| it.at).min()
    }
}

/// Checks that `next` lifts a halt of `now`.
pub const fn lifts(now: &Halt, next: &Halt) -> bool {
    (now.proposing && !next.proposing) || (now.verifying && !next.verifying)
}

/// Checks that `next` halts something that `now` does not.
pub const fn stops(now: &Halt, next: &Halt) -> bool {
    (next.proposing && !now.proposing) || (next.verifying && !now.verifying)
}

/// A person who takes part in lifting a halt that needs two people.
#[derive(Clone, Copy, Debug)]
pub struct LiftRequester<'a> {
    /// The person. For a token, its owner.
    pub account: &'a Account,
    /// The time since which the account or token exists unchanged. One that was created for this purpose is refused.
    pub since: Timestamp,
}

/// The reason why a person cannot be one of the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LiftRejected {
    /// The token belongs to a team, not to a person.
    Nobody,
    /// The account or token was created or changed after the halt.
    TooYoung,
    Disabled,
    /// The request both halts and lifts.
    Both,
}

impl LiftRejected {
    pub const fn words(self) -> &'static str {
        match self {
            Self::Nobody => {
                "lifting this halt needs two people, and this token belongs to a team: use an account or the token of one person"
            }
            Self::TooYoung => {
                "lifting this halt needs two people, and this account or token was created or changed after the halt: ask another administrator"
            }
            Self::Disabled => {
                "lifting this halt needs two people, and this account is disabled: ask another administrator"
            }
            Self::Both => "lifting this halt needs two people: send one request that halts and another that lifts",
        }
    }
}

/// The result of a request to lift a halt that needs two people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LiftOutcome {
    /// The first request. A second person must confirm it.
    Asked(LiftRequest),
    /// The same person repeated the request.
    Waiting,
    /// The second person confirmed.
    Confirmed,
}

/// Checks that a person can be one of the two.
pub fn counts(lifter: LiftRequester<'_>, stops: Option<&ActiveHalts>) -> Result<(), LiftRejected> {
    if lifter.account.disabled {
        return Err(LiftRejected::Disabled);
    }
    let since = stops.and_then(ActiveHalts::since);
    // Otherwise one administrator could create a second account and confirm alone.
    if since.is_some_and(|it| lifter.since >= it) { Err(LiftRejected::TooYoung) } else { Ok(()) }
}

/// Evaluates a request to lift. `first` is the current account of the first requester.
pub fn lift(
    stops: Option<&ActiveHalts>,
    wish: LiftRequest,
    lifter: LiftRequester<'_>,
    first: Option<LiftRequester<'_>>,
) -> Result<LiftOutcome, LiftRejected> {
    counts(lifter, stops)?;
    let asked = stops.and_then(|it| it.lifting.as_ref());
    // A confirmation counts only for exactly the requested change.
    let same = asked.filter(|it| (it.proposing, it.verifying) == (wish.proposing, wish.verifying));
    Ok(match (same, first) {
        (Some(asked), _) if asked.person == wish.person => LiftOutcome::Waiting,
        // A first requester who is no longer eligible is ignored. Otherwise a disabled account could still be one of
        // the two.
        (Some(_), Some(first)) if counts(first, stops).is_ok() => LiftOutcome::Confirmed,
        _ => LiftOutcome::Asked(wish),
    })
}
