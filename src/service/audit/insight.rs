//! What was counted for Insight: counted again from the log, it comes to the same rows.

use std::collections::BTreeMap;

use super::AuditRun;
use crate::domain::log::insight::{CountProgress, CountedEvent, InsightRows, PeriodFigures};
use crate::store::record::Stored;
use crate::store::records::{COUNTED, InsightRow};
use crate::store::row::Table;

impl AuditRun<'_> {
    pub(super) fn check_figures(&mut self) {
        let reached = self.all.figures.get(COUNTED).map(|it| &it.record);
        let reached = match reached {
            Some(InsightRow::Counted(counted)) => counted.clone(),
            _ => CountProgress::default(),
        };
        let (counted, mut sheet) = self.counted_again(reached.index);
        // What was counted meanwhile has reached another place at the next look.
        let place = reached.index;
        let same = counted == reached;
        self.expect(same, Table::Figures, COUNTED, format!("it is not what the log says up to place {place}"));
        let rows: BTreeMap<&String, &Stored<InsightRow>> = self.all.figures.iter().collect();
        for (id, stored) in rows {
            let InsightRow::Figures(figures) = &stored.record else { continue };
            let expected = sheet.remove(&figures.period);
            let same = expected.as_ref() == Some(figures);
            self.expect(same, Table::Figures, id, format!("it does not count what the log says up to place {place}"));
        }
        for figures in sheet.into_values() {
            let PeriodFigures { period, .. } = figures;
            self.note(
                Table::Figures,
                period.name(),
                format!("the log says something of it up to place {place}, and its row is gone"),
            );
        }
    }

    /// Nobody can have read further than the log reaches.
    pub(super) fn check_marks(&mut self) {
        let length = self.all.log.values().map(|it| it.record.index).max().unwrap_or_default();
        let beyond = self.all.marks.values().filter(|it| it.record.reached > length);
        let beyond: Vec<String> = beyond.map(|it| it.record.of.name().to_owned()).collect();
        for id in beyond {
            self.note(Table::Marks, id, format!("it says that more was read than the {length} events of the log"));
        }
    }

    fn counted_again(&self, until: u64) -> (CountProgress, InsightRows) {
        let (mut counted, mut sheet) = (CountProgress::default(), InsightRows::new());
        for row in self.all.log.values().map(|it| &it.record).take_while(|it| it.index <= until) {
            let Some(event) = self.all.events.get(row.event.as_str()).map(|it| &it.record) else { continue };
            let review = CountedEvent::of(event).and_then(|it| it.review().cloned());
            let hold = review.and_then(|it| self.all.holds.get(it.as_str())).map(|it| &it.record);
            counted.count(&mut sheet, row.index, event, hold);
        }
        (counted, sheet)
    }
}
