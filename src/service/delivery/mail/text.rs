//! What a mail says.

use crate::domain::delivery::endpoint::DisabledReason;
use crate::domain::delivery::mail_contact::MailContact;
use crate::domain::primitives::id::EventId;
use crate::domain::primitives::sanitize;
use crate::mail::MailMessage;
use crate::service::reviews::summary::ReviewSummary;

const END: &str =
    "Whoever opens a page has to sign in there. No mail decides anything, and none shows what is proposed.";

/// What is told of one thing.
pub(super) struct MailItemText {
    thing: MailSubject,
    /// What a list of mails shows.
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
        let ReviewSummary { thing, name, flow, risk, ends, page } = brief;
        Self {
            thing: MailSubject::Review,
            subject: format!("A review waits: {flow}"),
            begin: "A review waits for you.".to_owned(),
            facts: format!(
                "{thing:9}  {name}\nFlow       {flow}\nRisk       {risk}\nEnds       {ends}\nOpen       {page}\n"
            ),
        }
    }

    pub(super) fn disabled(name: &str, why: DisabledReason, page: &str) -> Self {
        let why = match why {
            DisabledReason::Gone => "it answered 410",
            DisabledReason::Failing => "nothing has arrived for five days",
            DisabledReason::ByHand => "somebody switched it off",
        };
        Self::of_endpoint("An endpoint is disabled", ("Disabled", why), name, page)
    }

    pub(super) fn recovered(name: &str, page: &str) -> Self {
        Self::of_endpoint("An endpoint is back", ("Enabled", "something arrived"), name, page)
    }

    fn of_endpoint(subject: &str, (state, why): (&str, &str), name: &str, page: &str) -> Self {
        let name = sanitize::printed(name).replace('\n', " ");
        Self {
            thing: MailSubject::Endpoint,
            subject: subject.to_owned(),
            begin: format!("{subject}."),
            facts: format!("Endpoint   {name}\n{state:9}  {why}\nOpen       {page}\n"),
        }
    }
}

/// One mail for all of it, named by the first event. Again it is the same, unless more came to it.
pub(super) fn mail(contact: &MailContact, event: &EventId, told: &[&MailItemText]) -> MailMessage {
    let facts: Vec<&str> = told.iter().map(|it| it.facts.as_str()).collect();
    let alike = told.iter().all(|it| it.thing == MailSubject::Review);
    let (subject, begin) = match told {
        [only] => (only.subject.clone(), only.begin.clone()),
        _ if alike => (format!("{} reviews wait", told.len()), format!("{} reviews wait for you.", told.len())),
        _ => (format!("{} things wait", told.len()), format!("{} things wait for you.", told.len())),
    };
    MailMessage {
        to: contact.mail.clone(),
        id: format!("{event}.{}.{}", told.len(), contact.account),
        subject,
        text: format!("{begin}\n\n{}\n{END}\n", facts.join("\n")),
    }
}
