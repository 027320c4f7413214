//! Reads when reviewers are reminded, and to whom a pending review is escalated.

use std::time::Duration;

use super::read_groups;
use crate::policy::bounds;
use crate::policy::error::{PolicyCode, PolicyError};
use crate::policy::model::EscalationRule;
use crate::policy::toml_reader::{TomlItem, TomlSection};

/// Reads a time that is shorter than the deadline of a review.
pub(super) fn read_within(item: &TomlItem<'_>, ttl: Duration) -> Result<Duration, PolicyError> {
    let after = item.duration(bounds::TTL)?;
    if after < ttl {
        return Ok(after);
    }
    let message = format!("`{}` is not shorter than `approval.ttl`, so it would never come to it", item.name());
    Err(item.error(PolicyCode::Contradiction, message))
}

/// Returns when and to whom: one without the other says nothing.
pub(super) fn read_escalation(section: &TomlSection<'_>, ttl: Duration) -> Result<Option<EscalationRule>, PolicyError> {
    let alone = |item: TomlItem<'_>, other: &str| {
        let message = format!("`{}` says nothing without `approval.{other}`", item.name());
        Err(item.error(PolicyCode::Contradiction, message))
    };
    match (section.get("escalate_after"), section.get("escalate_to")) {
        (None, None) => Ok(None),
        (Some(after), None) => alone(after, "escalate_to"),
        (None, Some(to)) => alone(to, "escalate_after"),
        (Some(after), Some(to)) => {
            let groups = read_groups(&to)?;
            // Without a group, the escalation would add no voter.
            if groups.is_empty() {
                return Err(to.error(PolicyCode::BadValue, "name at least one group to escalate to"));
            }
            Ok(Some(EscalationRule { after: read_within(&after, ttl)?, to: groups }))
        }
    }
}
