//! Texts of email notifications.

use crate::domain::delivery::endpoint::DisabledReason;
use crate::domain::delivery::mail_contact::MailContact;
use crate::domain::primitives::id::EventId;
use crate::domain::primitives::sanitize;
use crate::mail::MailMessage;
use crate::service::reviews::summary::ReviewSummary;

const END: &str =
    "Every page requires you to sign in. Emails show no proposed values, and no email can decide a review.";

/// Text about one review or endpoint.
pub(super) struct MailItemText {
    thing: MailSubject,
    /// Subject line if it is the only one in the mail.
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
            DisabledReason::Gone => "the endpoint responded with 410 Gone",
            DisabledReason::Failing => "no delivery has arrived for five days",
            DisabledReason::ByHand => "an administrator disabled it",
        };
        Self::of_endpoint("An endpoint is disabled", ("Disabled", why), name, page)
    }

    pub(super) fn recovered(name: &str, page: &str) -> Self {
        Self::of_endpoint("An endpoint is back", ("Enabled", "a delivery arrived"), name, page)
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

/// Returns one mail for all items. Its id depends on the first event, the count and the account, so a repeated mail has
/// the same id unless items were added.
pub(super) fn mail(contact: &MailContact, event: &EventId, told: &[&MailItemText]) -> MailMessage {
    let facts: Vec<&str> = told.iter().map(|it| it.facts.as_str()).collect();
    let alike = told.iter().all(|it| it.thing == MailSubject::Review);
    let (subject, begin) = match told {
        [only] => (only.subject.clone(), only.begin.clone()),
        _ if alike => (format!("{} reviews wait", told.len()), format!("{} reviews wait for you.", told.len())),
        _ => (format!("{} items need attention", told.len()), format!("{} items need your attention.", told.len())),
    };
    MailMessage {
        to: contact.mail.clone(),
        id: format!("{event}.{}.{}", told.len(), contact.account),
        subject,
        text: format!("{begin}\n\n{}\n{END}\n", facts.join("\n")),
    }
}
