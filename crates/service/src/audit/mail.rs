//! Checks that email contacts and notifications belong to existing accounts and events.

use countersign_domain::delivery::mail_contact::MailTopic;
use countersign_store::row::Table;

use super::AuditRun;

impl AuditRun<'_> {
    pub(super) fn check_contacts(&mut self) {
        let all = self.all;
        for id in all.contacts.keys() {
            self.expect(all.accounts.contains_key(id), Table::Contacts, id, "the account does not exist".to_owned());
        }
        for (id, letter) in &all.letters {
            let letter = &letter.record;
            let known = all.accounts.contains_key(letter.account.as_str());
            self.expect(known, Table::Letters, id, "the account does not exist".to_owned());
            let event = all.events.get(letter.event.as_str()).map(|it| &it.record);
            let told = event.and_then(|it| MailTopic::of(it.kind, &it.data));
            self.expect(
                told.as_ref() == Some(&letter.about),
                Table::Letters,
                id,
                "no event matches the email notification".to_owned(),
            );
        }
    }
}
