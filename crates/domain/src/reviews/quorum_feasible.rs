//! Checks that enough eligible reviewers exist for a quorum.

use std::collections::BTreeSet;

use super::{ApprovalStage, is_author};
use crate::identity::account::{Account, PersonRole};

/// Checks that distinct people could fill every stage. The gateway rejects a request that no group of reviewers could
/// approve. Each seat needs one person. Augmenting paths fill the seats, as in any bipartite matching.
pub fn can_be_approved(stages: &[ApprovalStage], excluded: &BTreeSet<String>, people: &[Account]) -> bool {
    let free: Vec<&Account> = people
        .iter()
        .filter(|it| !it.disabled && it.role == PersonRole::Reviewer && !is_author(excluded, it))
        .collect();
    let seats: Vec<&ApprovalStage> = stages.iter().flat_map(|stage| (0..stage.need).map(move |_| stage)).collect();
    let mut taken: Vec<Option<usize>> = vec![None; free.len()];
    (0..seats.len()).all(|seat| {
        let mut tried = vec![false; free.len()];
        seat_someone(seat, &seats, &free, &mut taken, &mut tried)
    })
}

fn seat_someone(
    seat: usize,
    seats: &[&ApprovalStage],
    free: &[&Account],
    taken: &mut [Option<usize>],
    tried: &mut [bool],
) -> bool {
    for person in 0..free.len() {
        // Each person is tried once per seat, which bounds the search.
        if tried[person] || seats[seat].groups.is_disjoint(&free[person].groups) {
            continue;
        }
        tried[person] = true;
        let movable = match taken[person] {
            None => true,
            // The person's current seat may be filled by another person.
            Some(other) => seat_someone(other, seats, free, taken, tried),
        };
        if movable {
            taken[person] = Some(seat);
            return true;
        }
    }
    false
}
