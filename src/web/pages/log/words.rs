//! What events are called for people. An event that has no words here is called by its name.

/// What the names of events begin with, and what such events are about.
pub const KINDS: [(&str, &str); 9] = [
    ("thread", "Threads"),
    ("transition", "Transitions"),
    ("review", "Reviews"),
    ("receipt", "Receipts"),
    ("write", "Writes"),
    ("policy", "Policies"),
    ("key", "Keys"),
    ("endpoint", "Endpoints"),
    ("access", "Access"),
];

const WORDS: [(&str, &str); 42] = [
    ("thread.created", "A thread was created"),
    ("thread.closed", "A thread was closed"),
    ("thread.reopened", "A thread was reopened"),
    ("transition.committed", "A version was committed"),
    ("transition.held", "A proposal was held for people"),
    ("transition.rejected", "A proposal was rejected"),
    ("transition.approved", "People approved"),
    ("transition.denied", "People denied"),
    ("transition.expired", "Nobody decided in time"),
    ("transition.cancelled", "A proposal was taken back"),
    ("transition.superseded", "Something took a proposal’s place"),
    ("review.vote", "Somebody voted"),
    ("review.revealed", "Somebody looked at a hidden value"),
    ("review.extended", "A deadline was moved"),
    ("review.reminded", "People were reminded"),
    ("review.escalated", "Others were asked as well"),
    ("receipt.issued", "A receipt was issued"),
    ("receipt.revoked", "A receipt was taken back"),
    ("write.reserved", "A writer was let through"),
    ("write.confirmed", "A writer confirmed its write"),
    ("write.aborted", "A writer said that it wrote nothing"),
    ("write.lapsed", "A writer never answered"),
    ("write.resolved", "An administrator settled a write"),
    ("policy.proposed", "A policy was proposed"),
    ("policy.vote", "Somebody voted on a policy"),
    ("policy.ended", "The asking about a policy ended"),
    ("policy.activated", "A policy was activated"),
    ("key.rotated", "Keys were rotated"),
    ("access.account_added", "An account was added"),
    ("access.account_disabled", "An account was disabled"),
    ("access.account_enabled", "An account was enabled"),
    ("access.token_added", "A token was added"),
    ("access.token_revoked", "A token was revoked"),
    ("access.setup_link_made", "A set-up link was made"),
    ("access.setup_link_used", "A set-up link was used"),
    ("access.signed_in", "Somebody signed in"),
    ("access.sign_in_failed", "A sign-in failed"),
    ("access.delegated", "Somebody named another to vote for them"),
    ("access.delegation_ended", "Voting for another was ended early"),
    ("access.signed_out", "Somebody signed out"),
    ("access.halted", "Somebody stopped the gateway"),
    ("access.halt_lifted", "Somebody lifted a stop"),
];

/// What an event of that name is called.
pub fn of(name: &str) -> &str {
    WORDS.iter().find(|it| it.0 == name).map_or(name, |it| it.1)
}
