//! What is told of a review or an interrupt outside of the gateway, where nobody has signed in: that it waits, and nothing
//! of what is proposed.

use std::collections::BTreeSet;

use crate::domain::interrupts::Interrupt;
use crate::domain::json::pointer::Pointer;
use crate::domain::keys::Keys;
use crate::domain::primitives::id::FlowId;
use crate::domain::primitives::time::Timestamp;
use crate::domain::reviews::Hold;
use crate::service::Service;
use crate::service::error::Result;

/// Keys that are named; more of them tell nobody more.
const KEYS_MAX: usize = 8;

/// What is told of one of them.
pub(in crate::service) struct ReviewSummary {
    /// What it is: `Review` or `Interrupt`.
    pub(in crate::service) thing: &'static str,
    pub(in crate::service) name: String,
    pub(in crate::service) flow: FlowId,
    /// What it touches that the policy protects, by the policy's own names.
    pub(in crate::service) risk: String,
    pub(in crate::service) ends: Timestamp,
    /// The page where one signs in, looks and decides.
    pub(in crate::service) page: String,
}

impl Service {
    pub(in crate::service) async fn brief_of(&self, keys: &Keys, hold: &Hold) -> Result<ReviewSummary> {
        let policy = self.policy(keys, hold.policy).await?;
        Ok(ReviewSummary {
            thing: "Review",
            name: hold.id.to_string(),
            flow: hold.flow.clone(),
            risk: risk_of(hold, |it| policy.hides(it)),
            ends: hold.expires_at,
            page: format!("{}/reviews/{}", self.public_url(), hold.id),
        })
    }

    /// Of what a host asserts not even the keys are told: they are its own words.
    pub(in crate::service) fn brief_of_interrupt(&self, interrupt: &Interrupt) -> ReviewSummary {
        ReviewSummary {
            thing: "Interrupt",
            name: interrupt.id.to_string(),
            flow: interrupt.flow.clone(),
            risk: "asserted by its host, and not checked".to_owned(),
            ends: interrupt.expires_at,
            page: format!("{}/interrupts/{}", self.public_url(), interrupt.id),
        }
    }
}

/// What is touched, by the policy's names; what it hides is not named.
fn risk_of(hold: &Hold, hides: impl Fn(&Pointer) -> bool) -> String {
    let mut named = BTreeSet::new();
    let (mut hidden, mut other) = (0_usize, false);
    for reason in &hold.reasons {
        match reason.pointer.as_deref() {
            None => other = true,
            Some(key) => {
                let dotted = key.strip_prefix("$.").unwrap_or(key);
                let pointer =
                    if dotted.starts_with('/') { dotted.to_owned() } else { format!("/{}", dotted.replace('.', "/")) };
                match Pointer::try_from(pointer.as_str()) {
                    Ok(pointer) if !hides(&pointer) => drop(named.insert(key.to_owned())),
                    _ => hidden += 1,
                }
            }
        }
    }
    let more = named.len().saturating_sub(KEYS_MAX);
    let mut parts: Vec<String> = named.into_iter().take(KEYS_MAX).collect();
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    if hidden > 0 {
        parts.push("something hidden".to_owned());
    }
    match (parts.is_empty(), other) {
        (true, _) => "a rule of the policy asks".to_owned(),
        (false, false) => format!("protected: {}", parts.join(", ")),
        (false, true) => format!("protected: {}; a rule of the policy asks, too", parts.join(", ")),
    }
}
