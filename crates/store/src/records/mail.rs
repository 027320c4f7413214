//! Records of email addresses and pending notifications.

use countersign_domain::delivery::mail_contact::{MailContact, MailNotification};

use super::OPEN;
use crate::record::Record;
use crate::row::{Facets, Table};

impl Record for MailContact {
    const TABLE: Table = Table::Contacts;
    fn id(&self) -> String {
        self.account.to_string()
    }
    fn facets(&self) -> Facets {
        Facets::default()
    }
}

impl Record for MailNotification {
    const TABLE: Table = Table::Letters;
    fn id(&self) -> String {
        let (kind, id) = self.about.thing();
        format!("{}/{kind}/{id}", self.account)
    }
    fn facets(&self) -> Facets {
        Facets { due: self.due.millis(), state: OPEN.to_owned(), ..Facets::default() }
    }
}
