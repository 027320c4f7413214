//! Limits of a policy, with the reason of each.

use std::ops::RangeInclusive;
use std::time::Duration;

/// People write and read a policy. A longer one is generated, and the digest of every head covers it.
pub(super) const POLICY_BYTES_MAX: usize = 256 * 1024;
/// One for the state and a few shared by nodes is usual.
pub(super) const SCHEMAS_MAX: usize = 64;
/// Violations that one check returns. A thousand are as useful as ten thousand, and they fit into a response.
pub(super) const VIOLATIONS_MAX: usize = 1_000;
/// Total length of the paths of one check's violations, without the first. The agent chooses the paths, so their
/// length must be bounded.
pub(super) const VIOLATIONS_BYTES_MAX: usize = 64 * 1024;
/// Nodes of one agent graph. Each review shows what every writer among them will read.
pub(super) const NODES_MAX: usize = 256;
/// Every changed leaf is compared with every pattern of a list. The product limits the work of a judgement.
pub(super) const PATTERNS_MAX: usize = 256;
/// Values of one order. More steps than a person could name are a number.
pub(super) const ORDER_MAX: usize = 256;
/// Each rule is evaluated for every change. The product limits the work of a judgement.
pub(super) const RULES_MAX: usize = 128;
/// A longer condition should be several rules.
pub(super) const RULE_BYTES_MAX: usize = 2_048;
/// Warnings of one request. They are stored, and an event and a page show them. A longer list would not be read.
pub(super) const WARNINGS_MAX: usize = 64;
/// A rule's reason is a sentence, shown in lists.
pub(super) const RULE_REASON_CHARS_MAX: usize = 300;
/// A name in a list of errors.
pub(super) const RULE_NAME_CHARS_MAX: usize = 64;
/// Operators and names in one condition.
pub(super) const RULE_PARTS_MAX: usize = 256;
/// Nested brackets. CEL's parser takes up to 160 KiB of stack for each, and a thread has 2 MiB.
pub(super) const RULE_BRACKETS_MAX: usize = 6;
/// Nested `a ? b : c`, and everything else that nests without brackets.
pub(super) const RULE_DEPTH_MAX: u16 = 24;
/// Tools with a description.
pub(super) const TOOLS_DESCRIBED_MAX: usize = 256;
/// Arguments that a description names.
pub(super) const TOOL_ARGUMENTS_MAX: usize = 64;
/// Characters of a title, a label or a unit.
pub(super) const TOOL_LABEL_CHARS_MAX: usize = 64;
/// Characters of a tool's description.
pub(super) const TOOL_DESCRIPTION_CHARS_MAX: usize = 300;
/// Names of tools in one list. Each call is compared with every one.
pub(super) const TOOLS_MAX: usize = 256;
/// Keeps sums small enough for a row.
pub(super) const BUDGET_MAX: u64 = 1_000_000_000_000_000;
/// Tokens of one view. No state has more.
pub(super) const GIVEN_TOKENS_MAX: u64 = 100_000_000;
/// Paths that a node requires or ranks. Required paths are in every signed envelope, whose size is bounded.
pub(super) const PLACES_MAX: usize = 64;
/// Length of each of these paths, for the same reason.
pub(super) const PLACE_BYTES_MAX: usize = 256;
/// Versions that stay in the database. No thread has more.
pub(super) const RETAINED_VERSIONS_MAX: u64 = 1_000_000_000;
/// A hundred years. For a longer time, leave the key out of the policy.
pub(super) const RETAINED_DAYS_MAX: u64 = 36_525;
/// Nested loops. Each one multiplies the cost by the length of a list.
pub(super) const RULE_LOOPS_MAX: usize = 2;
/// Steps that all rules of one judgement may take together. Twenty rules over ten thousand changes take about half of
/// them. Using all of them takes some tens of milliseconds.
pub(super) const RULE_STEPS_MAX: usize = 2_000_000;
/// Stages, which are decided one after another.
pub(super) const STAGES_MAX: usize = 8;
/// Detectors. Each one checks every shown value.
pub(super) const DETECTORS_MAX: usize = 32;
/// The name replaces the text that the detector found.
pub(super) const DETECTOR_NAME_BYTES_MAX: usize = 40;
/// Groups are listed on the review page.
pub(super) const GROUPS_MAX: usize = 32;
/// More signatures than a page can show do not improve a decision.
pub(super) const NEED: RangeInclusive<u32> = 1..=32;
/// Each attempt puts the same question to the same reviewers again.
pub(super) const ATTEMPTS: RangeInclusive<u32> = 1..=100;
/// Reviewers may remember a question for a day, but not for more than ninety days.
pub(super) const ATTEMPTS_WITHIN: RangeInclusive<Duration> = secs(1)..=secs(90 * 24 * 3600);
/// Denials. No stage can have more.
pub(super) const DENIALS: RangeInclusive<u32> = 1..=32;
/// The lower bound suits a demonstration, and the upper one a long holiday. A pending review blocks its thread all
/// that time.
pub(super) const TTL: RangeInclusive<Duration> = secs(1)..=secs(90 * 24 * 3600);
/// A receipt allows a write. A long lifetime also helps an attacker who steals one.
pub(super) const RECEIPT_TTL: RangeInclusive<Duration> = secs(1)..=secs(24 * 3600);
/// While a lease is active, no agent can commit and no reviewer can vote.
pub(super) const WRITE_LEASE: RangeInclusive<Duration> = secs(1)..=secs(3600);
/// Age of a passkey sign-in. Seconds are too short to read a change, and a day is the length of a session.
pub(super) const PASSKEY_WITHIN: RangeInclusive<Duration> = secs(30)..=secs(24 * 3600);

/// One day and one night. A reviewer sees a request from the end of one working day on the next.
pub(super) const TTL_DEFAULT: Duration = secs(24 * 3600);
/// Long enough for a queue and a retry, and too short to be collected for later.
pub(super) const RECEIPT_TTL_DEFAULT: Duration = secs(10 * 60);
/// Many times what a database transaction takes.
pub(super) const WRITE_LEASE_DEFAULT: Duration = secs(30);
/// A second attempt may be better than the first. A fourth one is pressure.
pub(super) const ATTEMPTS_DEFAULT: u32 = 3;
/// A denial applies for the rest of the day, and for the reviewers of the next shift.
pub(super) const ATTEMPTS_WITHIN_DEFAULT: Duration = secs(24 * 3600);
/// One denial is enough, unless the policy sets another number.
pub(super) const DENIALS_DEFAULT: u32 = 1;

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}
