//! Counts the figures for Insight again from the audit log and compares them with the stored rows.

use std::collections::BTreeMap;

use countersign_domain::log::insight::{CountProgress, CountedEvent, InsightRows, PeriodFigures};
use countersign_store::record::Stored;
use countersign_store::records::{COUNTED, InsightRow};
use countersign_store::row::Table;

use super::AuditRun;

impl AuditRun<'_> {
    pub(super) fn check_figures(&mut self) {
        let reached = self.all.figures.get(COUNTED).map(|it| &it.record);
        let reached = match reached {
            Some(InsightRow::Counted(counted)) => counted.clone(),
            _ => CountProgress::default(),
        };
        let (counted, mut sheet) = self.counted_again(reached.index);
        // If the counter moved on since then, the next pass reads another position.
        let place = reached.index;
        let same = counted == reached;
        self.expect(
            same,
            Table::Figures,
            COUNTED,
            format!("the counter differs from the audit log up to position {place}"),
        );
        let rows: BTreeMap<&String, &Stored<InsightRow>> = self.all.figures.iter().collect();
        for (id, stored) in rows {
            let InsightRow::Figures(figures) = &stored.record else { continue };
            let expected = sheet.remove(&figures.period);
            let same = expected.as_ref() == Some(figures);
            self.expect(
                same,
                Table::Figures,
                id,
                format!("the figures differ from the audit log up to position {place}"),
            );
        }
        // Periods that are left have events, but no row.
        for figures in sheet.into_values() {
            let PeriodFigures { period, .. } = figures;
            self.note(
                Table::Figures,
                period.name(),
                format!("the row is missing, but the audit log has events of the period up to position {place}"),
            );
        }
    }

    /// Checks that no log export has a position beyond the end of the audit log.
    pub(super) fn check_marks(&mut self) {
        let length = self.all.log.values().map(|it| it.record.index).max().unwrap_or_default();
        let beyond = self.all.marks.values().filter(|it| it.record.reached > length);
        let beyond: Vec<String> = beyond.map(|it| it.record.of.name().to_owned()).collect();
        for id in beyond {
            self.note(
                Table::Marks,
                id,
                format!("the position is beyond the end of the audit log, which has {length} events"),
            );
        }
    }

    fn counted_again(&self, until: u64) -> (CountProgress, InsightRows) {
        let (mut counted, mut sheet) = (CountProgress::default(), InsightRows::new());
        for row in self.all.log.values().map(|it| &it.record).take_while(|it| it.index <= until) {
            // `check_log` reports a missing event.
            let Some(event) = self.all.events.get(row.event.as_str()).map(|it| &it.record) else { continue };
            let review = CountedEvent::of(event).and_then(|it| it.review().cloned());
            let hold = review.and_then(|it| self.all.holds.get(it.as_str())).map(|it| &it.record);
            counted.count(&mut sheet, row.index, event, hold);
        }
        (counted, sheet)
    }
}
