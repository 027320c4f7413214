//! Who wants what at one place, and whose word counts.

use serde_json::Value;

/// One value that branches gave a place, or that they took it away; and which of them did.
pub(super) struct BranchValue<'v> {
    pub(super) value: Option<&'v Value>,
    /// By their order in the request; never empty, and ascending.
    pub(super) sides: Vec<usize>,
}

/// The values that differ from what stood there, in the order in which the request names who has them first.
pub(super) fn claims<'v>(base: Option<&Value>, sides: &[Option<&'v Value>]) -> Vec<BranchValue<'v>> {
    let mut claims: Vec<BranchValue<'v>> = Vec::new();
    for (side, value) in sides.iter().enumerate().filter(|(_, it)| **it != base) {
        match claims.iter_mut().find(|it| it.value == *value) {
            Some(claim) => claim.sides.push(side),
            None => claims.push(BranchValue { value: *value, sides: vec![side] }),
        }
    }
    claims
}

/// That of the branch named last.
pub(super) fn last(claims: &[BranchValue<'_>]) -> Option<Option<Value>> {
    claims.iter().max_by_key(|it| it.sides.last().copied()).map(|it| it.value.cloned())
}

/// That with the most weight behind it; of equals the one whose first branch is named first.
pub(super) fn heaviest(claims: &[BranchValue<'_>], weight: impl Fn(usize) -> u64) -> Option<Option<Value>> {
    let weight = |it: &BranchValue<'_>| -> u64 { it.sides.iter().map(|side| weight(*side)).sum() };
    // Of equals the last is the maximum, and the claims ascend by who has them first.
    claims.iter().rev().max_by_key(|it| weight(it)).map(|it| it.value.cloned())
}
