//! Summaries of reviews and interrupts for notifications, which leave the gateway and have no access control.
//! They contain nothing of the proposed values.

use std::collections::BTreeSet;

use countersign_domain::interrupts::Interrupt;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::keys::Keys;
use countersign_domain::policy::{Policy, ToolDescription};
use countersign_domain::primitives::id::{FlowId, ToolName};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::Hold;

use crate::error::{Error, Result};
use crate::reviews::Reviews;

/// The maximum number of named keys, for a short message.
const KEYS_MAX: usize = 8;

/// The summary of a review or an interrupt.
pub(crate) struct ReviewSummary {
    /// The kind: `Review` or `Interrupt`.
    pub(crate) thing: &'static str,
    pub(crate) name: String,
    pub(crate) flow: FlowId,
    /// The tool call: `planner wants to call issue_refund`. It has no arguments, because they are proposed values, and a
    /// name only if the policy has it.
    pub(crate) call: Option<String>,
    /// The protected keys that the change touches, as the policy names them.
    pub(crate) risk: String,
    pub(crate) ends: Timestamp,
    /// The page where a person signs in and decides.
    pub(crate) page: String,
}

impl Reviews {
    pub(crate) async fn brief_of(&self, keys: &Keys, hold: &Hold) -> Result<ReviewSummary> {
        let policy = self.policies.policy(keys, hold.policy).await?;
        Ok(ReviewSummary {
            thing: "Review",
            name: hold.id.to_string(),
            flow: hold.flow.clone(),
            call: self.call_in_words(keys, hold, &policy).await?,
            risk: risk_of(hold, |it| policy.hides(it)),
            ends: hold.expires_at,
            page: format!("{}/reviews/{}", self.core.public_url(), hold.id),
        })
    }

    async fn call_in_words(&self, keys: &Keys, hold: &Hold, policy: &Policy) -> Result<Option<String>> {
        // Only an ended review can be archived, and its message is shown without the call.
        let statement = match self.threads.stated(keys, hold.transition).await {
            Err(Error::Archive(_) | Error::NoArchives) => return Ok(None),
            stated => stated?.statement,
        };
        let name = statement.tool.as_ref().and_then(|it| it.get("name")?.as_str());
        let Some(tool) = name.and_then(|it| ToolName::try_from(it).ok()) else { return Ok(None) };
        if !policy.names_tool(&tool) {
            return Ok(Some(format!("{} wants to call a tool", hold.node)));
        }
        let words = format!("{} wants to call {tool}", hold.node);
        let title = policy.tool_description(&tool).and_then(ToolDescription::title);
        Ok(Some(title.map_or_else(|| words.clone(), |title| format!("{words} ({title})"))))
    }

    /// Returns the summary of an interrupt. Its keys are omitted, because the host application wrote them.
    pub(crate) fn brief_of_interrupt(&self, interrupt: &Interrupt) -> ReviewSummary {
        ReviewSummary {
            thing: "Interrupt",
            name: interrupt.id.to_string(),
            flow: interrupt.flow.clone(),
            call: None,
            risk: "reported by the host application, not verified by the gateway".to_owned(),
            ends: interrupt.expires_at,
            page: format!("{}/interrupts/{}", self.core.public_url(), interrupt.id),
        }
    }
}

/// Returns the protected keys that a change touches. Redacted keys are only counted.
fn risk_of(hold: &Hold, hides: impl Fn(&Pointer) -> bool) -> String {
    let mut named = BTreeSet::new();
    let (mut hidden, mut other) = (0_usize, false);
    for reason in &hold.reasons {
        match reason.pointer.as_deref() {
            None => other = true,
            Some(key) => {
                // The pattern is `$.a.b`, `a.b` or a JSON Pointer.
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
        parts.push("a redacted key".to_owned());
    }
    match (parts.is_empty(), other) {
        (true, _) => "a policy rule requires approval".to_owned(),
        (false, false) => format!("protected: {}", parts.join(", ")),
        (false, true) => format!("protected: {}; a policy rule requires approval", parts.join(", ")),
    }
}
