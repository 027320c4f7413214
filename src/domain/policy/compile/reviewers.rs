//! What only makes sense where somebody can be asked.

use crate::domain::policy::error::{PolicyCode, PolicyError};
use crate::domain::policy::model::ApprovalPolicy;
use crate::domain::policy::toml_reader::TomlItem;

/// To hold without anybody to ask would be to reject.
pub(super) fn need_people(item: &TomlItem<'_>, approval: &ApprovalPolicy) -> Result<(), PolicyError> {
    if approval.stages.is_empty() {
        let message = "`then = \"hold\"` needs people: add [[approval.stages]] with `groups`, or nobody could approve";
        return Err(item.error(PolicyCode::Contradiction, message));
    }
    Ok(())
}
