//! The timeline of a review, oldest event first.

use std::borrow::Cow;

use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{BrowserCheck, Extension, HoldState, Reveal, ReviewComment, Vote, VoteVerdict};
use countersign_domain::writes::write::{Write, WriteState};
use countersign_service::identity::requester_names::RequesterName;
use countersign_service::reviews::details::ReviewFacts;

use super::progress::groups;
use crate::pages::shared::call_outcome::{is_call_only, outcome_phrase};
use crate::pages::shared::format::{listed, moment};
use crate::pages::shared::layout::Tone;
use crate::pages::shared::safe_text::{SafeLine, SafePath, SafeText};
use crate::pages::shared::widgets::TimelineItem;

/// Builds the timeline: proposal, votes, comments, outcome, receipt, write and reveals.
pub fn timeline(facts: &ReviewFacts) -> Vec<TimelineItem> {
    let teller = TimelineBuilder { now: facts.now };
    let hold = &facts.hold;
    let (author, words) = match (super::change::editor_of(facts), &facts.by) {
        (Some(name), _) => (name, "edited the change"),
        (None, Some(RequesterName::Person(name))) => (name.as_str(), "requested a rollback"),
        (None, _) if is_call_only(facts) => (hold.node.as_str(), "requested the call"),
        (None, _) => (hold.node.as_str(), "proposed the change"),
    };
    let mut items = vec![
        teller.item(Some(author), words, Tone::Plain, facts.transition.statement.proposed_at),
        teller.item(None, "The gateway held it for approval", Tone::Care, hold.opened_at),
    ];
    items.extend(hold.votes.iter().map(|it| teller.vote(facts, it)));
    items.extend(hold.votes.iter().filter_map(|it| teller.withdrawal(it)));
    items.extend(teller.notices(facts));
    items.extend(hold.extensions.iter().map(|it| teller.extension(facts, it)));
    items.extend(hold.comments.iter().map(|it| teller.comment(facts, it)));
    items.extend(teller.end(facts));
    items.extend(teller.write(facts));
    items.extend(hold.reveals.iter().map(|it| teller.reveal(facts, it)));
    // The sort is stable, so items of the same moment stay in the order in which they were added.
    items.sort_by(|one, other| one.at.iso.cmp(&other.at.iso));
    items
}

fn said(shown: Cow<'_, str>) -> Option<SafeText> {
    (!shown.is_empty()).then(|| SafeText::new(shown))
}

struct TimelineBuilder {
    now: Timestamp,
}

impl TimelineBuilder {
    fn item(&self, who: Option<&str>, words: impl Into<String>, tone: Tone, at: Timestamp) -> TimelineItem {
        let (words, at) = (words.into(), moment(at, self.now));
        TimelineItem { tone, who: who.map(SafeLine::new), words, comment: None, claim: None, at }
    }

    fn vote(&self, facts: &ReviewFacts, vote: &Vote) -> TimelineItem {
        let stage = facts.hold.stages.get(vote.stage as usize);
        // An escalation adds groups later, so the groups are those at the time of the vote.
        let asked = stage.map(|_| groups(&facts.hold.groups_for_stage(vote.stage as usize, vote.at)));
        let asked = listed(&asked.unwrap_or_default(), "or");
        let (word, tone) = match vote.verdict {
            VoteVerdict::Approve => ("approved", Tone::Good),
            VoteVerdict::Deny => ("denied", Tone::Bad),
        };
        // A withdrawn vote has no color, because only counted votes have one.
        let (taken_back, tone) = if vote.stands() { ("", tone) } else { (", no longer counted,", Tone::Plain) };
        let instead = vote.absent.as_ref().map(|it| format!(" for {}, who is away,", it.name)).unwrap_or_default();
        let claim = match vote.browser_check {
            // The check ran in a browser, so the text calls it a report and not a fact.
            BrowserCheck::Match => "Their browser reported that the page gives this digest.",
            BrowserCheck::Mismatch => "Their browser reported that the page does not give this digest.",
            BrowserCheck::NotRecomputed => "Not recomputed in their browser.",
        };
        TimelineItem {
            // A comment can quote a redacted value, so it is masked for the reader of the page.
            comment: vote.comment.as_deref().map(|it| SafeText::new(facts.said(&vote.reviewer, it))),
            claim: Some(match vote.typed {
                Some(_) => format!("{claim} They typed the digest’s last digits."),
                None => claim.to_owned(),
            }),
            ..self.item(Some(&vote.name), format!("{word}{instead} as {asked}{taken_back}"), tone, vote.at)
        }
    }

    fn withdrawal(&self, vote: &Vote) -> Option<TimelineItem> {
        let back = vote.withdrawn.as_ref()?;
        let word = match vote.verdict {
            VoteVerdict::Approve => "approval",
            VoteVerdict::Deny => "denial",
        };
        Some(match vote.absent.as_ref().filter(|it| back.by.as_ref() == Some(&it.person)) {
            Some(absent) => {
                let words = format!("withdrew the {word} that {} gave for them", vote.name);
                self.item(Some(&absent.name), words, Tone::Care, back.at)
            }
            None => self.item(Some(&vote.name), format!("withdrew their {word}"), Tone::Care, back.at),
        })
    }

    /// Lists reminder and escalation by their times, because they take effect before the worker has written their
    /// events.
    fn notices(&self, facts: &ReviewFacts) -> Vec<TimelineItem> {
        let hold = &facts.hold;
        let over = hold.state.ended_at().unwrap_or(self.now).min(hold.expires_at).min(self.now);
        // The notices are stored in advance, so one that was due after the end never happened.
        let reminder = hold.notices.reminder.filter(|it| it.from < over);
        let reminder = reminder.map(|it| self.item(None, "The gateway reminded the reviewers", Tone::Plain, it.from));
        let escalation = hold.notices.escalation.as_ref().filter(|it| it.from < over).map(|it| {
            let to = listed(&groups(&it.to), "and");
            self.item(None, format!("The review was escalated: {to} can also vote in every stage"), Tone::Care, it.from)
        });
        reminder.into_iter().chain(escalation).collect()
    }

    fn extension(&self, facts: &ReviewFacts, extension: &Extension) -> TimelineItem {
        let until = moment(extension.until, self.now).words;
        TimelineItem {
            comment: said(facts.said(&extension.person, &extension.reason)),
            ..self.item(Some(&extension.name), format!("extended the deadline to {until}"), Tone::Care, extension.at)
        }
    }

    fn comment(&self, facts: &ReviewFacts, comment: &ReviewComment) -> TimelineItem {
        TimelineItem {
            comment: Some(SafeText::new(facts.said(&comment.person, &comment.words))),
            ..self.item(Some(&comment.name), "commented", Tone::Plain, comment.at)
        }
    }

    fn reveal(&self, facts: &ReviewFacts, reveal: &Reveal) -> TimelineItem {
        let (asked, at) = (listed(&groups(&reveal.groups), "and"), SafePath::new(reveal.pointer.to_string()).plain());
        TimelineItem {
            comment: said(facts.said(&reveal.person, &reveal.reason)),
            ..self.item(
                Some(&reveal.name),
                format!("revealed the redacted value of {at}, as {asked}"),
                Tone::Care,
                reveal.at,
            )
        }
    }

    fn end(&self, facts: &ReviewFacts) -> Option<TimelineItem> {
        Some(match &facts.hold.state {
            HoldState::Open {} => return None,
            HoldState::Approved { at, .. } if is_call_only(facts) => {
                self.item(None, "The approval is complete, and the gateway signed a receipt", Tone::Good, *at)
            }
            HoldState::Denied { at, .. } if is_call_only(facts) => {
                self.item(None, "The review ended, and the call may not run", Tone::Bad, *at)
            }
            HoldState::Approved { at, version, .. } => {
                let words = format!("The gateway committed it as version {version} and signed a receipt");
                self.item(None, words, Tone::Good, *at)
            }
            HoldState::Denied { at, .. } => self.item(None, "The review ended without a commit", Tone::Bad, *at),
            HoldState::Expired { at } => self.item(None, "The deadline passed without a decision", Tone::Plain, *at),
            HoldState::Cancelled { at, reason } => TimelineItem {
                comment: said(facts.cancelled_because(reason)),
                ..self.item(None, "Its proposer cancelled it", Tone::Plain, *at)
            },
            HoldState::Superseded { at, policy: Some(_), .. } => {
                self.item(None, "Another policy was activated for the flow", Tone::Plain, *at)
            }
            HoldState::Superseded { at, .. } => self.item(None, "It was superseded", Tone::Plain, *at),
        })
    }

    /// Lists the start and the outcome of the call of an approval request.
    fn call(&self, write: &Write) -> Vec<TimelineItem> {
        let node = Some(write.node.as_str());
        let reported = format!("reported that {}", outcome_phrase(write, self.now));
        let mut items = vec![self.item(node, "started the call", Tone::Care, write.reserved_at)];
        items.extend(match &write.state {
            WriteState::Reserved {} if write.is_live(self.now) => None,
            WriteState::Reserved {} => {
                Some(self.item(node, "never reported the outcome", Tone::Care, write.lease_expires_at))
            }
            WriteState::Confirmed { at, .. } => Some(self.item(node, reported, Tone::Good, *at)),
            WriteState::Aborted { at, .. } => Some(self.item(node, reported, Tone::Plain, *at)),
            WriteState::Failed { at } => Some(self.item(node, reported, Tone::Care, *at)),
            WriteState::Late { at } => Some(self.item(node, format!("{reported}, too late"), Tone::Care, *at)),
            WriteState::Resolved { at, .. } => Some(self.item(None, "An administrator resolved it", Tone::Plain, *at)),
        });
        items
    }

    fn write(&self, facts: &ReviewFacts) -> Vec<TimelineItem> {
        let revoked = facts.receipt.as_ref().and_then(|it| it.revoked.as_ref());
        let mut items: Vec<TimelineItem> = revoked
            .map(|it| TimelineItem {
                // A reason can quote a redacted value, too.
                comment: said(facts.revoked_because(&it.reason)),
                ..self.item(None, "The receipt was revoked", Tone::Care, it.at)
            })
            .into_iter()
            .collect();
        let Some(write) = &facts.write else { return items };
        if facts.thread.request.is_some() {
            items.extend(self.call(write));
            return items;
        }
        let node = Some(write.node.as_str());
        items.push(self.item(
            node,
            format!("was authorized to write once, fence {}", write.fence),
            Tone::Care,
            write.reserved_at,
        ));
        items.extend(match &write.state {
            // A writer within its lease can still report its outcome.
            WriteState::Reserved {} if write.is_live(facts.now) => None,
            WriteState::Reserved {} => {
                Some(self.item(node, "never reported the outcome", Tone::Care, write.lease_expires_at))
            }
            WriteState::Confirmed { at, version, .. } => {
                Some(self.item(node, format!("confirmed its write, version {version}"), Tone::Good, *at))
            }
            WriteState::Aborted { at, .. } => Some(self.item(node, "reported that it wrote nothing", Tone::Plain, *at)),
            WriteState::Failed { at } => Some(self.item(node, "reported that the call failed", Tone::Care, *at)),
            WriteState::Late { at } => Some(self.item(node, "confirmed its write too late", Tone::Care, *at)),
            WriteState::Resolved { at, .. } => Some(self.item(None, "An administrator resolved it", Tone::Plain, *at)),
        });
        items
    }
}
