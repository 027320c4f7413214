//! Stops: who pulled them, since when and why, and how many people it takes to let things go on.
//!
//! To stop is cheap and safe, so one person does it. To let things go on is neither; where it needs two, that is
//! written down with the stop itself, so that a stop is not made easier to lift while it stands.

use serde::{Deserialize, Serialize};

use crate::domain::identity::account::Account;
use crate::domain::primitives::id::{AccountId, PrincipalId};
use crate::domain::primitives::time::Timestamp;

#[cfg(test)]
mod tests;

/// What is stopped. Both may be.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Halt {
    /// Whether proposing and voting are halted.
    pub proposing: bool,
    /// Whether verifying is halted.
    pub verifying: bool,
    pub reason: String,
}

/// How many people let things go on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub enum LiftQuorum {
    #[default]
    One,
    /// One asks, another confirms.
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
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
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

/// What stands still, by whom, and how it may go on. There is none where nothing is stopped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActiveHalts {
    pub proposing: Option<HaltRecord>,
    pub verifying: Option<HaltRecord>,
    /// How many people lift them.
    pub lift_needs: LiftQuorum,
    /// What one of two has asked for.
    pub lifting: Option<LiftRequest>,
}

impl ActiveHalts {
    /// The stops once `halt` is set by somebody: what stood already keeps who stopped it and since when, and what
    /// was asked for is not asked for any more. It never takes fewer people than it took.
    pub fn after(before: Option<&Self>, halt: &Halt, stop: &HaltRecord, needs: LiftQuorum) -> Option<Self> {
        if !halt.proposing && !halt.verifying {
            return None;
        }
        let kept = |of: fn(&Self) -> &Option<HaltRecord>| before.and_then(|it| of(it).clone());
        let standing = |stands: bool, of: fn(&Self) -> &Option<HaltRecord>| {
            stands.then(|| kept(of).unwrap_or_else(|| stop.clone()))
        };
        Some(Self {
            proposing: standing(halt.proposing, |it| &it.proposing),
            verifying: standing(halt.verifying, |it| &it.verifying),
            lift_needs: needs.max(before.map_or(LiftQuorum::One, |it| it.lift_needs)),
            lifting: None,
        })
    }

    /// The stops once somebody has asked to lift them. Of a halt that an older version set nobody knows who set it.
    pub fn asked(before: Option<&Self>, halt: &Halt, lifting: LiftRequest) -> Self {
        let unknown = |stands: bool| {
            stands.then(|| HaltRecord {
                by: lifting.by.clone(),
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

    /// Since when the oldest of them stands.
    pub fn since(&self) -> Option<Timestamp> {
        [&self.proposing, &self.verifying].into_iter().flatten().map(|it| it.at).min()
    }
}

/// Whether `next` lets something go on that `now` stops.
pub const fn lifts(now: &Halt, next: &Halt) -> bool {
    (now.proposing && !next.proposing) || (now.verifying && !next.verifying)
}

/// Whether `next` stops something that goes on by `now`.
pub const fn stops(now: &Halt, next: &Halt) -> bool {
    (next.proposing && !now.proposing) || (next.verifying && !now.verifying)
}

/// Who lifts, where two are needed: somebody in particular.
#[derive(Clone, Copy, Debug)]
pub struct LiftRequester<'a> {
    /// The person; of a token, its owner.
    pub account: &'a Account,
    /// Since when they can: an account or a token that is made for it does not count.
    pub since: Timestamp,
}

/// Why somebody does not count as one of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LiftRejected {
    /// The token of a team is nobody in particular.
    Nobody,
    /// The account or token is as young as the halt.
    TooYoung,
    Disabled,
    /// Stopping and lifting are two requests.
    Both,
}

impl LiftRejected {
    pub const fn words(self) -> &'static str {
        match self {
            Self::Nobody => {
                "two people lift this halt, and this token is a team's, so nobody's in particular: a person must do it"
            }
            Self::TooYoung => {
                "two people lift this halt, and who was added or changed since it was set does not count as one"
            }
            Self::Disabled => "two people lift this halt, and who is disabled does not count as one",
            Self::Both => "two people lift this halt: stop what shall stop first, then ask to lift what shall go on",
        }
    }
}

/// What becomes of somebody's wish to lift where two are needed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LiftOutcome {
    /// They are the first, and a second must confirm.
    Asked(LiftRequest),
    /// They asked for the very same already.
    Waiting,
    /// They are the second.
    Confirmed,
}

/// Whether somebody counts as one of two.
pub fn counts(lifter: LiftRequester<'_>, stops: Option<&ActiveHalts>) -> Result<(), LiftRejected> {
    if lifter.account.disabled {
        return Err(LiftRejected::Disabled);
    }
    let since = stops.and_then(ActiveHalts::since);
    if since.is_some_and(|it| lifter.since >= it) { Err(LiftRejected::TooYoung) } else { Ok(()) }
}

/// Judges a wish to lift. `first` is whoever asked before, as they stand now.
pub fn lift(
    stops: Option<&ActiveHalts>,
    wish: LiftRequest,
    lifter: LiftRequester<'_>,
    first: Option<LiftRequester<'_>>,
) -> Result<LiftOutcome, LiftRejected> {
    counts(lifter, stops)?;
    let asked = stops.and_then(|it| it.lifting.as_ref());
    let same = asked.filter(|it| (it.proposing, it.verifying) == (wish.proposing, wish.verifying));
    Ok(match (same, first) {
        (Some(asked), _) if asked.person == wish.person => LiftOutcome::Waiting,
        // Who asked first and does not count any more is as if they had not.
        (Some(_), Some(first)) if counts(first, stops).is_ok() => LiftOutcome::Confirmed,
        _ => LiftOutcome::Asked(wish),
    })
}
