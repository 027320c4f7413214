//! Conflicting values at one path, and the strategies that choose one.

use serde_json::Value;

/// A value at one path and the branches that set it. `None` means that they removed it.
pub(super) struct BranchValue<'v> {
    pub(super) value: Option<&'v Value>,
    /// Indexes of the branches in the request: ascending and not empty.
    pub(super) sides: Vec<usize>,
}

/// Returns the values that differ from the base, ordered by the first branch in the request that has them.
pub(super) fn claims<'v>(base: Option<&Value>, sides: &[Option<&'v Value>]) -> Vec<BranchValue<'v>> {
    let mut claims: Vec<BranchValue<'v>> = Vec::new();
    // Branches with the base value make no claim.
    for (side, value) in sides.iter().enumerate().filter(|(_, it)| **it != base) {
        match claims.iter_mut().find(|it| it.value == *value) {
            Some(claim) => claim.sides.push(side),
            None => claims.push(BranchValue { value: *value, sides: vec![side] }),
        }
    }
    claims
}

/// Returns the value of the branch that the request names last.
pub(super) fn last(claims: &[BranchValue<'_>]) -> Option<Option<Value>> {
    claims.iter().max_by_key(|it| it.sides.last().copied()).map(|it| it.value.cloned())
}

/// Returns the value with the highest total weight. If weights are equal, the value of the branch named first wins.
pub(super) fn heaviest(claims: &[BranchValue<'_>], weight: impl Fn(usize) -> u64) -> Option<Option<Value>> {
    let weight = |it: &BranchValue<'_>| -> u64 { it.sides.iter().map(|side| weight(*side)).sum() };
    // `max_by_key` returns the last of equal items. The reversed order makes the branch named first win.
    claims.iter().rev().max_by_key(|it| weight(it)).map(|it| it.value.cloned())
}
