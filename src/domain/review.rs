//! Holds and the votes on them: who may decide, and when a decision is one.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::account::{Account, PersonRole};
use super::chain::hash::Digest;
use super::chain::receipt::{Approval, Method, Refusal};
use super::id::{AccountId, FlowId, GroupName, Jti, NodeId, PrincipalId, ReviewId, ThreadId};
use super::thread::Context;
use super::time::Timestamp;

/// Whose approval one stage asks for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Any of these groups.
    pub groups: BTreeSet<GroupName>,
    /// How many distinct people.
    pub need: u32,
    /// Whether a vote must say why.
    pub comment_required: bool,
}

/// What a person says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It may happen.
    Approve,
    /// It may not.
    Deny,
}

/// What the voter's browser said of its own recomputation: a claim, kept with the vote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BrowserCheck {
    /// Roots and digest came out as shown.
    Match,
    /// They did not.
    Mismatch,
    /// No script ran.
    #[default]
    NotRecomputed,
}

/// A counted vote.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vote {
    /// Whose.
    pub reviewer: AccountId,
    /// Their name when they voted.
    pub name: String,
    /// For which stage, from 0.
    pub stage: u32,
    /// What they said.
    pub verdict: Verdict,
    /// Of exactly what.
    pub transition: Digest,
    /// The page's one-time nonce.
    pub nonce: String,
    /// Why.
    pub comment: Option<String>,
    /// What their browser recomputed.
    pub browser_check: BrowserCheck,
    /// When.
    pub at: Timestamp,
}

/// How a hold stands. Ends are facts, and a time-out is never a person's refusal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum HoldState {
    /// People are asked.
    Open {},
    /// Every stage has its quorum.
    Approved {
        /// When.
        at: Timestamp,
        /// The receipt that came of it.
        receipt: Jti,
        /// The version it was committed as.
        version: u64,
    },
    /// People refused.
    Denied {
        /// When.
        at: Timestamp,
        /// The signed denial.
        denial: String,
    },
    /// Nobody decided in time.
    Expired {
        /// When that was noticed; the deadline itself counts.
        at: Timestamp,
    },
    /// Its proposer took it back.
    Cancelled {
        /// When.
        at: Timestamp,
        /// Why.
        reason: String,
    },
    /// An edit took its place, or a write was confirmed on the head it stood on, or the thread was closed.
    Superseded {
        /// When.
        at: Timestamp,
        /// By which transition, if one.
        by: Option<Digest>,
    },
}

/// A transition that waits for people.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// The page's name.
    pub id: ReviewId,
    /// What is held.
    pub transition: Digest,
    /// The thread it would advance.
    pub thread: ThreadId,
    /// The flow.
    pub flow: FlowId,
    /// The policy it was judged by.
    pub policy: Digest,
    /// The node that proposed it.
    pub node: NodeId,
    /// The token that proposed it.
    pub proposer: PrincipalId,
    /// What the host said of the thread.
    pub context: Context,
    /// Why it is held.
    pub reasons: Vec<HoldReason>,
    /// Owners and editors who may not decide it.
    pub excluded: BTreeSet<String>,
    /// Whose approval it needs.
    pub stages: Vec<Stage>,
    /// How many denials end it.
    pub denials_needed: u32,
    /// Since when.
    pub opened_at: Timestamp,
    /// Until when.
    pub expires_at: Timestamp,
    /// The counted votes, in their order.
    pub votes: Vec<Vote>,
    /// How it stands.
    pub state: HoldState,
}

/// Why a transition is held.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldReason {
    /// `protected`, `edit`, `reaffirm`, `rollback`.
    pub code: String,
    /// The protected key, as the policy writes it, if one is touched.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pointer: Option<String>,
    /// In words.
    pub text: String,
    /// Whether telling it to the proposer would say that something it may not read differs.
    #[serde(default)]
    pub for_reviewers_only: bool,
}

/// What a person asks to have counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ballot {
    /// Of exactly what.
    pub transition: Digest,
    /// For which stage.
    pub stage: u32,
    /// What they say.
    pub verdict: Verdict,
    /// The page's nonce, already found to be ours.
    pub nonce: String,
    /// Why.
    pub comment: Option<String>,
    /// What their browser recomputed.
    pub browser_check: BrowserCheck,
    /// Whether they ticked that a write's outcome is unknown.
    pub outcome_unknown_accepted: Ticked,
}

/// A tick of a box.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ticked {
    /// Yes.
    Yes,
    /// No.
    No,
}

/// Why a person cannot decide a hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Ineligible {
    /// Only reviewers vote.
    #[error("only accounts with the role reviewer decide")]
    Role,
    /// The account was disabled.
    #[error("the account is disabled")]
    Disabled,
    /// Their agent proposed it, or they edited it.
    #[error("proposed by your own agent, or edited by you, since the last confirmed write")]
    Author,
    /// Not asked.
    #[error("not in a group that this review asks")]
    Group,
    /// One person, one vote.
    #[error("you have already voted")]
    Voted,
}

/// Why a vote is not counted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VoteRefused {
    /// The hold ended before.
    #[error("this review has ended")]
    Ended,
    /// The deadline has passed.
    #[error("the deadline has passed")]
    Expired,
    /// The digest is not the one held.
    #[error("the digest is not the one that is held")]
    Digest,
    /// The person may not decide it.
    #[error("{0}")]
    Ineligible(#[from] Ineligible),
    /// There is no such stage, or the person is not in its groups.
    #[error("not a stage that you can decide")]
    Stage,
    /// The policy asks for a reason.
    #[error("this stage asks for a comment")]
    CommentRequired,
    /// The comment is too long.
    #[error("a comment has at most {COMMENT_CHARS_MAX} characters")]
    CommentTooLong,
    /// The page was used before.
    #[error("this page was used before; open the review again")]
    NonceUsed,
    /// The browser found that the page does not come out as the digest.
    #[error("the browser found that the page and the digest do not agree")]
    Mismatch,
    /// A write's outcome is unknown and the box was not ticked.
    #[error("an earlier write's outcome is unknown; approving needs the box ticked")]
    OutcomeUnknown,
}

/// A comment is a paragraph, not a document.
pub const COMMENT_CHARS_MAX: usize = 4_000;

/// What a counted vote leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum Tally {
    /// More are needed.
    Waiting(Hold),
    /// Every stage has its quorum: the approvals that count.
    Approved(Hold, Vec<Approval>),
    /// Enough people refused.
    Denied(Hold, Vec<Refusal>),
}

/// What a vote is counted against, besides the hold.
pub struct Bench<'a> {
    /// Everyone who voted, as they stand now, the new voter included.
    pub people: &'a [Account],
    /// Whether an earlier write's outcome is unknown.
    pub outcome_unknown: bool,
    /// The time.
    pub now: Timestamp,
}

impl Hold {
    /// Whether people can still decide it.
    pub fn is_open(&self, now: Timestamp) -> bool {
        matches!(self.state, HoldState::Open {}) && now < self.expires_at
    }

    /// Why a person may not decide it, or the stages that they may decide.
    pub fn eligible(&self, person: &Account) -> Result<Vec<u32>, Ineligible> {
        if self.votes.iter().any(|vote| vote.reviewer == person.id) {
            return Err(Ineligible::Voted);
        }
        self.stages_of(person)
    }

    fn stages_of(&self, person: &Account) -> Result<Vec<u32>, Ineligible> {
        if person.disabled {
            return Err(Ineligible::Disabled);
        }
        if person.role != PersonRole::Reviewer {
            return Err(Ineligible::Role);
        }
        if is_author(&self.excluded, person) {
            return Err(Ineligible::Author);
        }
        let stages: Vec<u32> = (0u32..)
            .zip(&self.stages)
            .filter(|(_, stage)| !stage.groups.is_disjoint(&person.groups))
            .map(|(index, _)| index)
            .collect();
        if stages.is_empty() { Err(Ineligible::Group) } else { Ok(stages) }
    }

    /// How many votes a stage has of those it needs, counting the people given as they stand now.
    pub fn approvals(&self, stage: u32, people: &[Account]) -> u32 {
        let counted = self.votes.iter().filter(|vote| vote.stage == stage && vote.verdict == Verdict::Approve);
        let still = counted.filter(|vote| {
            people.iter().any(|it| it.id == vote.reviewer && self.stages_of(it).is_ok_and(|at| at.contains(&stage)))
        });
        u32::try_from(still.count()).unwrap_or(u32::MAX)
    }

    /// Counts a vote, or says why not.
    pub fn vote(mut self, ballot: Ballot, voter: &Account, bench: &Bench<'_>) -> Result<Tally, VoteRefused> {
        self.check(&ballot, voter, bench)?;
        let verdict = ballot.verdict;
        self.votes.push(Vote {
            reviewer: voter.id.clone(),
            name: voter.name.clone(),
            stage: ballot.stage,
            verdict,
            transition: ballot.transition,
            nonce: ballot.nonce,
            comment: ballot.comment,
            browser_check: ballot.browser_check,
            at: bench.now,
        });
        Ok(match verdict {
            Verdict::Approve => self.tally_approvals(bench),
            Verdict::Deny => self.tally_denials(),
        })
    }

    fn check(&self, ballot: &Ballot, voter: &Account, bench: &Bench<'_>) -> Result<(), VoteRefused> {
        if !matches!(self.state, HoldState::Open {}) {
            return Err(VoteRefused::Ended);
        }
        if bench.now >= self.expires_at {
            return Err(VoteRefused::Expired);
        }
        if ballot.transition != self.transition {
            return Err(VoteRefused::Digest);
        }
        if self.votes.iter().any(|vote| vote.nonce == ballot.nonce) {
            return Err(VoteRefused::NonceUsed);
        }
        if !self.eligible(voter)?.contains(&ballot.stage) {
            return Err(VoteRefused::Stage);
        }
        self.check_words(ballot)?;
        if ballot.verdict == Verdict::Deny {
            return Ok(());
        }
        if ballot.browser_check == BrowserCheck::Mismatch {
            return Err(VoteRefused::Mismatch);
        }
        if bench.outcome_unknown && ballot.outcome_unknown_accepted == Ticked::No {
            return Err(VoteRefused::OutcomeUnknown);
        }
        Ok(())
    }

    fn check_words(&self, ballot: &Ballot) -> Result<(), VoteRefused> {
        let stage = usize::try_from(ballot.stage).ok().and_then(|it| self.stages.get(it)).ok_or(VoteRefused::Stage)?;
        let said = ballot.comment.as_deref().unwrap_or_default();
        if stage.comment_required && said.trim().is_empty() {
            return Err(VoteRefused::CommentRequired);
        }
        if said.chars().count() > COMMENT_CHARS_MAX {
            return Err(VoteRefused::CommentTooLong);
        }
        Ok(())
    }

    fn tally_approvals(self, bench: &Bench<'_>) -> Tally {
        let full = (0u32..).zip(&self.stages).all(|(i, stage)| self.approvals(i, bench.people) >= stage.need);
        if !full {
            return Tally::Waiting(self);
        }
        let counted = self.votes.iter().filter(|vote| {
            let voter = bench.people.iter().find(|it| it.id == vote.reviewer);
            vote.verdict == Verdict::Approve
                && voter.is_some_and(|it| self.stages_of(it).is_ok_and(|at| at.contains(&vote.stage)))
        });
        let approvals = counted.map(|vote| Approval {
            reviewer: vote.reviewer.clone(),
            stage: vote.stage,
            at: vote.at,
            method: Method::Password,
            evidence: None,
        });
        let approvals = approvals.collect();
        Tally::Approved(self, approvals)
    }

    fn tally_denials(self) -> Tally {
        let refusals: Vec<Refusal> = self
            .votes
            .iter()
            .filter(|vote| vote.verdict == Verdict::Deny)
            .map(|vote| Refusal { reviewer: vote.reviewer.clone(), stage: vote.stage, at: vote.at })
            .collect();
        let enough = u32::try_from(refusals.len()).is_ok_and(|it| it >= self.denials_needed);
        if enough { Tally::Denied(self, refusals) } else { Tally::Waiting(self) }
    }

    /// The hold with its end. Only an open one can end, so an end is never overwritten.
    pub fn ended(mut self, end: HoldState) -> Result<Self, VoteRefused> {
        match self.state {
            HoldState::Open {} => {
                self.state = end;
                Ok(self)
            }
            _ => Err(VoteRefused::Ended),
        }
    }
}

/// Whether a person owns, alone or as a team, an agent that had a hand in it.
fn is_author(excluded: &BTreeSet<String>, person: &Account) -> bool {
    excluded.contains(&person.name)
        || excluded.contains(person.id.as_str())
        || person.groups.iter().any(|group| excluded.contains(group.as_str()))
}

/// Whether distinct people could fill every stage: a hold that nobody could approve is a rejection instead.
/// Each seat asks for one person; seats are filled by augmenting paths, as in any bipartite matching.
pub fn can_be_approved(stages: &[Stage], excluded: &BTreeSet<String>, people: &[Account]) -> bool {
    let free: Vec<&Account> = people
        .iter()
        .filter(|it| !it.disabled && it.role == PersonRole::Reviewer && !is_author(excluded, it))
        .collect();
    let seats: Vec<&Stage> =
        stages.iter().flat_map(|stage| (0..stage.need).map(move |_| stage)).collect();
    let mut taken: Vec<Option<usize>> = vec![None; free.len()];
    (0..seats.len()).all(|seat| {
        let mut tried = vec![false; free.len()];
        seat_someone(seat, &seats, &free, &mut taken, &mut tried)
    })
}

fn seat_someone(seat: usize, seats: &[&Stage], free: &[&Account], taken: &mut [Option<usize>], tried: &mut [bool]) -> bool {
    for person in 0..free.len() {
        if tried[person] || seats[seat].groups.is_disjoint(&free[person].groups) {
            continue;
        }
        tried[person] = true;
        let movable = match taken[person] {
            None => true,
            Some(other) => seat_someone(other, seats, free, taken, tried),
        };
        if movable {
            taken[person] = Some(seat);
            return true;
        }
    }
    false
}
