//! Answers that are kept to be given again: of tokens that there are, and each as it was hidden.

use super::AuditRun;
use crate::store::row::Table;

impl AuditRun<'_> {
    pub(super) fn check_answers(&mut self) {
        let (all, key) = (self.all, self.keys.row());
        for (id, stored) in &all.answers {
            let kept = &stored.record;
            let known = all.tokens.contains_key(kept.token.as_str());
            self.expect(known, Table::Answers, id, "there is no such token");
            self.expect(kept.is_whole(key), Table::Answers, id, "the answer was hidden in another row");
        }
    }
}
