//! Checks the responses that are stored for idempotent requests. The token of each must exist, and the encrypted
//! response must belong to its row.

use countersign_store::row::Table;

use super::AuditRun;

impl AuditRun<'_> {
    pub(super) fn check_answers(&mut self) {
        let (all, key) = (self.all, self.keys.row());
        for (id, stored) in &all.answers {
            let kept = &stored.record;
            let known = all.tokens.contains_key(kept.token.as_str());
            self.expect(known, Table::Answers, id, "the token of the stored response does not exist");
            self.expect(kept.is_whole(key), Table::Answers, id, "the stored response was encrypted for another row");
        }
    }
}
