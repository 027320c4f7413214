//! How much a policy may ask for, and why not more.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A policy is written and read by people; past this it is generated, and every head carries its digest's input.
pub(super) const POLICY_BYTES_MAX: usize = 256 * 1024;
/// One for the state and a few shared by nodes is usual.
pub(super) const SCHEMAS_MAX: usize = 64;
/// What one check tells an asker. A thousand violations say as much as ten thousand, and fit into an answer.
pub(super) const VIOLATIONS_MAX: usize = 1_000;
/// What the places of one check's violations take together, but for the first: an agent chooses how long they are.
pub(super) const VIOLATIONS_BYTES_MAX: usize = 64 * 1024;
/// Nodes of one agent graph. Each review shows what every writer among them will read.
pub(super) const NODES_MAX: usize = 256;
/// Every changed leaf is held against every pattern of a list: the product bounds the work of a judgement.
pub(super) const PATTERNS_MAX: usize = 256;
/// Values of one order. More steps than a person could name are a number.
pub(super) const ORDER_MAX: usize = 256;
/// Each is asked about every change: the product bounds the work of a judgement.
pub(super) const RULES_MAX: usize = 128;
/// A condition that does not fit a screen is several rules.
pub(super) const RULE_BYTES_MAX: usize = 2_048;
/// Warnings of one request. They are kept, and stand in an event and on a page: more would not be read.
pub(super) const WARNINGS_MAX: usize = 64;
/// A rule's reason is a sentence, shown in lists.
pub(super) const RULE_REASON_CHARS_MAX: usize = 300;
/// A name in a list of errors.
pub(super) const RULE_NAME_CHARS_MAX: usize = 64;
/// Operators and names in one condition.
pub(super) const RULE_PARTS_MAX: usize = 256;
/// Brackets within brackets. CEL's parser takes up to 160 KiB of stack for each; a thread has 2 MiB.
pub(super) const RULE_BRACKETS_MAX: usize = 6;
/// `a ? b : c` within one another, and whatever else nests without brackets.
pub(super) const RULE_DEPTH_MAX: u16 = 24;
/// Names of tools in one list: each call is held against every one.
pub(super) const TOOLS_MAX: usize = 256;
/// Below what sums stay at that no row could hold.
pub(super) const BUDGET_MAX: u64 = 1_000_000_000_000_000;
/// Tokens of one view: more than any state has.
pub(super) const GIVEN_TOKENS_MAX: u64 = 100_000_000;
/// Places that a node requires or ranks: what it requires stands in every envelope, whose signature is bounded.
pub(super) const PLACES_MAX: usize = 64;
/// How long each of them may be, for the same reason.
pub(super) const PLACE_BYTES_MAX: usize = 256;
/// Versions that stay in the database: more than a thread comes to.
pub(super) const RETAINED_VERSIONS_MAX: u64 = 1_000_000_000;
/// A hundred years: whoever wants more writes nothing.
pub(super) const RETAINED_DAYS_MAX: u64 = 36_525;
/// Lists within lists: each of these multiplies with the length of a list.
pub(super) const RULE_LOOPS_MAX: usize = 2;
/// What all rules of one judgement may cost together: twenty rules over ten thousand changes take about half of it,
/// and using all of it up takes some tens of milliseconds.
pub(super) const RULE_STEPS_MAX: usize = 2_000_000;
/// People climb these one after another.
pub(super) const STAGES_MAX: usize = 8;
/// Every shown value is looked at by each.
pub(super) const DETECTORS_MAX: usize = 32;
/// It stands in the place of what it found.
pub(super) const DETECTOR_NAME_BYTES_MAX: usize = 40;
/// Groups are listed on the review page.
pub(super) const GROUPS_MAX: usize = 32;
/// No decision is better for more signatures than a page can show.
pub(super) const NEED: RangeInclusive<u32> = 1..=32;
/// Each try puts the same question to the same people again.
pub(super) const ATTEMPTS: RangeInclusive<u32> = 1..=100;
/// Reviewers remember a question for a day; after ninety days nobody does.
pub(super) const ATTEMPTS_WITHIN: RangeInclusive<Duration> = secs(1)..=secs(90 * 24 * 3600);
/// As many as people could deny in one stage.
pub(super) const DENIALS: RangeInclusive<u32> = 1..=32;
/// From what a demonstration needs to a long holiday; a hold pauses its thread all the while.
pub(super) const TTL: RangeInclusive<Duration> = secs(1)..=secs(90 * 24 * 3600);
/// A receipt opens a write. The longer it lives, the longer a stolen one does.
pub(super) const RECEIPT_TTL: RangeInclusive<Duration> = secs(1)..=secs(24 * 3600);
/// While a lease lives nobody can commit or vote.
pub(super) const WRITE_LEASE: RangeInclusive<Duration> = secs(1)..=secs(3600);
/// A passkey that was used to sign in: seconds are too few to read a change, and a day is a session's length.
pub(super) const PASSKEY_WITHIN: RangeInclusive<Duration> = secs(30)..=secs(24 * 3600);

/// A working day and a night: a hold opened at the end of one day is seen in the next.
pub(super) const TTL_DEFAULT: Duration = secs(24 * 3600);
/// Long enough for a queue and a retry, too short to be hoarded.
pub(super) const RECEIPT_TTL_DEFAULT: Duration = secs(10 * 60);
/// Many times what a database transaction takes.
pub(super) const WRITE_LEASE_DEFAULT: Duration = secs(30);
/// A second try may be better; a fourth is pressure.
pub(super) const ATTEMPTS_DEFAULT: u32 = 3;
/// "No" holds for the rest of the day, and for the reviewers of the next shift.
pub(super) const ATTEMPTS_WITHIN_DEFAULT: Duration = secs(24 * 3600);
/// One person's no is a no unless the policy says otherwise.
pub(super) const DENIALS_DEFAULT: u32 = 1;

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}
