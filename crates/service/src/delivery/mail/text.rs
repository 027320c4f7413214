//! Subjects and texts of email notifications.

use countersign_adapters::mail::MailMessage;
use countersign_domain::delivery::endpoint::DisabledReason;
use countersign_domain::delivery::mail_contact::MailContact;
use countersign_domain::primitives::id::EventId;
use countersign_domain::primitives::sanitize;

use crate::reviews::summary::ReviewSummary;

const END: &str =
    "To decide, open the page and sign in. You cannot decide by email, and no email shows the proposed values.";

/// Subject and text about one review or one endpoint.
pub(super) struct MailItemText {
    thing: MailSubject,
    subject: String,
    begin: String,
    facts: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MailSubject {
    Review,
    Endpoint,
}

impl MailItemText {
    pub(super) fn waiting(brief: &ReviewSummary) -> Self {
        let ReviewSummary { thing, name, flow, call, risk, ends, page } = brief;
        let call = call.as_ref().map(|it| format!("Call       {it}\n")).unwrap_or_default();
        Self {
            thing: MailSubject::Review,
            subject: format!("A review waits: {flow}"),
            begin: "A review is waiting for your decision.".to_owned(),
            facts: format!(
                "{thing:9}  {name}\nFlow       {flow}\n{call}Risk       {risk}\nEnds       {ends}\nOpen       {page}\n"
            ),
        }
    }

    pub(super) fn disabled(name: &str, why: DisabledReason, page: &str) -> Self {
        let why = match why {
            DisabledReason::Gone => "it answered 410 (gone)",
            DisabledReason::Failing => "no delivery succeeded for five days",
            DisabledReason::ByHand => "an administrator disabled it",
        };
        Self::of_endpoint("Endpoint disabled", "Disabled", why, name, page)
    }

    pub(super) fn recovered(name: &str, page: &str) -> Self {
        Self::of_endpoint("Endpoint enabled again", "Enabled", "a delivery succeeded", name, page)
    }

    fn of_endpoint(subject: &str, state: &str, why: &str, name: &str, page: &str) -> Self {
        // A line break in a name could otherwise add a false line to the facts.
        let name = sanitize::printed(name).replace('\n', " ");
        Self {
            thing: MailSubject::Endpoint,
            subject: subject.to_owned(),
            begin: format!("{subject}."),
            facts: format!("Endpoint   {name}\n{state:9}  {why}\nOpen       {page}\n"),
        }
    }
}

/// Combines texts into one email.
///
/// The message id consists of the first event and the number of texts, so that a repeated attempt has the same id and
/// mail programs can detect the duplicate.
pub(super) fn mail(contact: &MailContact, event: &EventId, told: &[&MailItemText]) -> MailMessage {
    let facts: Vec<&str> = told.iter().map(|it| it.facts.as_str()).collect();
    let alike = told.iter().all(|it| it.thing == MailSubject::Review);
    let (subject, begin) = match told {
        [only] => (only.subject.clone(), only.begin.clone()),
        _ if alike => {
            (format!("{} reviews wait", told.len()), format!("{} reviews are waiting for your decision.", told.len()))
        }
        _ => (format!("{} notifications", told.len()), format!("You have {} notifications.", told.len())),
    };
    MailMessage {
        to: contact.mail.clone(),
        id: format!("{event}.{}.{}", told.len(), contact.account),
        subject,
        text: format!("{begin}\n\n{}\n{END}\n", facts.join("\n")),
    }
}
