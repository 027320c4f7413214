//! Checks the settings that need at least one approval stage.

use crate::policy::error::{PolicyCode, PolicyError};
use crate::policy::model::ApprovalPolicy;
use crate::policy::toml_reader::TomlItem;

/// Without a stage, a rule that holds would always reject.
pub(super) fn need_people(item: &TomlItem<'_>, approval: &ApprovalPolicy) -> Result<(), PolicyError> {
    if approval.stages.is_empty() {
        let message = format!("`{} = \"hold\"` needs reviewers: add [[approval.stages]] with `groups`", item.name());
        return Err(item.error(PolicyCode::Contradiction, message));
    }
    Ok(())
}
