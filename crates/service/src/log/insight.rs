//! Insight: counts reviews and their duration from the log in batches, and reads the counts for the page.

use std::collections::{BTreeMap, BTreeSet};

use countersign_domain::keys::Keys;
use countersign_domain::log::event::Event;
use countersign_domain::log::insight::{
    BucketWidth, CountProgress, CountedEvent, InsightRows, Period, PeriodFigures, add,
};
use countersign_domain::primitives::id::FlowId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::Hold;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use countersign_store::records::{COUNTED, InsightRow, LOG, LogRow, log_id};
use countersign_store::{Cursor, RowFilter};

use crate::error::{Error, Result};
use crate::log::Log;

/// Events in one counting batch: enough to catch up with a busy log, in some milliseconds of work.
const COUNTED_AT_ONCE: u32 = 500;

/// The figures that Insight shows for a period.
#[derive(Clone, Debug)]
pub struct InsightFacts {
    /// The hours or days of the period in order, including empty ones.
    pub figures: Vec<PeriodFigures>,
    /// The start of the counted time, if the figures do not cover the whole period.
    pub since: Option<Timestamp>,
    pub counted: CountProgress,
    /// How many events of the log are not counted yet.
    pub behind: u64,
    pub flows: Vec<FlowId>,
    /// The time at which the figures were read.
    pub now: Timestamp,
}

impl Log {
    /// Counts the next events of the log and returns their number. One commit stores both the counts and the
    /// position. Therefore concurrent gateways count nothing twice, and a crash loses nothing.
    pub async fn count_events(&self) -> Result<usize> {
        match self.count_batch().await {
            // Another gateway counted it.
            Err(error) if error.is_conflict() => Ok(0),
            done => done,
        }
    }

    async fn count_batch(&self) -> Result<usize> {
        let keys = self.core.keys()?;
        let reached = self.core.fetch::<InsightRow>(&keys, COUNTED).await?;
        let mut counted = reached.as_ref().map_or_else(CountProgress::default, counted_of);
        let events = self.events_beyond(&keys, counted.index).await?;
        if events.is_empty() {
            return Ok(0);
        }
        let holds = self.holds_named(&keys, events.iter().map(|it| &it.1)).await?;
        let stored = self.figures_of(&keys, events.iter().map(|it| it.1.at)).await?;
        let mut sheet: InsightRows = stored.iter().map(|(period, it)| (*period, it.1.clone())).collect();
        for (index, event) in &events {
            let review = CountedEvent::of(event).and_then(|it| it.review().cloned());
            let hold = review.as_ref().and_then(|it| holds.get(it.as_str()));
            if review.is_some() && hold.is_none() {
                return Err(Error::Broken("a review that an event names"));
            }
            counted.count(&mut sheet, *index, event, hold);
        }
        let mut draft = Draft::new(keys.row(), self.core.now());
        for (period, figures) in sheet {
            let row = InsightRow::Figures(figures);
            match stored.get(&period) {
                None => drop(draft.insert(&row)?),
                Some((stored, _)) if stored.record == row => {}
                Some((stored, _)) => draft.replace(stored, &row)?,
            }
        }
        let row = InsightRow::Counted(counted);
        match &reached {
            None => drop(draft.insert(&row)?),
            Some(stored) => draft.replace(stored, &row)?,
        }
        self.core.commit(draft.finish()).await?;
        for (_, event) in &events {
            let review = CountedEvent::of(event).and_then(|it| it.review().cloned());
            let hold = review.and_then(|it| holds.get(it.as_str()));
            self.core.metrics.happened(event, hold.map(|it| it.opened_at));
        }
        Ok(events.len())
    }

    /// Returns the events after a log position, each with its own position.
    async fn events_beyond(&self, keys: &Keys, index: u64) -> Result<Vec<(u64, Event)>> {
        let reader = self.core.reader(keys);
        let after = Cursor { due: 0, id: log_id(index) };
        let rows = reader.list::<LogRow>(RowFilter::All, Some(&after), COUNTED_AT_ONCE).await?;
        let ids: Vec<String> = rows.iter().map(|it| it.record.event.to_string()).collect();
        let events = reader.get_many::<Event>(&ids).await?.into_iter();
        let mut events: BTreeMap<String, Event> = events.map(|it| (it.record.id.to_string(), it.record)).collect();
        let event = |it: &Stored<LogRow>| {
            // Removed instead of cloned, because each event has one position.
            let event = events.remove(it.record.event.as_str());
            event.map(|event| (it.record.index, event)).ok_or(Error::Broken("an event that the log names"))
        };
        rows.iter().map(event).collect()
    }

    /// Returns the pending or closed reviews that these events name, by id.
    async fn holds_named(&self, keys: &Keys, events: impl Iterator<Item = &Event>) -> Result<BTreeMap<String, Hold>> {
        let named: BTreeSet<String> =
            events.filter_map(|it| Some(CountedEvent::of(it)?.review()?.to_string())).collect();
        let named: Vec<String> = named.into_iter().collect();
        let holds = self.core.reader(keys).get_many::<Hold>(&named).await?;
        Ok(holds.into_iter().map(|it| (it.record.id.to_string(), it.record)).collect())
    }

    /// Returns the stored figures of the hours and days that contain these moments.
    async fn figures_of(
        &self,
        keys: &Keys,
        moments: impl Iterator<Item = Timestamp> + Clone,
    ) -> Result<BTreeMap<Period, (Stored<InsightRow>, PeriodFigures)>> {
        let periods =
            BucketWidth::KEPT.into_iter().flat_map(|step| moments.clone().map(move |at| Period::of(step, at)));
        let names: BTreeSet<String> = periods.map(|it| it.name()).collect();
        let mut found = BTreeMap::new();
        let names: Vec<String> = names.into_iter().collect();
        for chunk in names.chunks(countersign_store::LIST_ROWS_MAX as usize) {
            for stored in self.core.reader(keys).get_many::<InsightRow>(chunk).await? {
                if let InsightRow::Figures(figures) = &stored.record {
                    let figures = figures.clone();
                    found.insert(figures.period, (stored, figures));
                }
            }
        }
        Ok(found)
    }

    /// Returns the stored figures of consecutive hours or days.
    async fn kept_figures(&self, keys: &Keys, wanted: &[Period]) -> Result<InsightRows> {
        let before = wanted.first().map(|it| Cursor { due: 0, id: it.previous().name() });
        let most = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
        let rows = self.core.reader(keys).list::<InsightRow>(RowFilter::All, before.as_ref(), most).await?;
        let figures = rows.into_iter().filter_map(|it| match it.record {
            InsightRow::Figures(figures) => Some((figures.period, figures)),
            InsightRow::Counted(_) => None,
        });
        Ok(figures.collect())
    }

    /// Counts the last events up to a position by the minute. The second part is the start of these events,
    /// unless they are all events.
    async fn lately(&self, keys: &Keys, index: u64) -> Result<(InsightRows, Option<Timestamp>)> {
        let after = index.saturating_sub(u64::from(COUNTED_AT_ONCE));
        let mut events = self.events_beyond(keys, after).await?;
        events.retain(|it| it.0 <= index);
        let holds = self.holds_named(keys, events.iter().map(|it| &it.1)).await?;
        let mut sheet = InsightRows::new();
        // After the commit, so that an event that another gateway counted is not added to the metrics here
        // too.
        for (_, event) in &events {
            let review = CountedEvent::of(event).and_then(|it| it.review().cloned());
            add(&mut sheet, BucketWidth::Minute, event, review.and_then(|it| holds.get(it.as_str())));
        }
        Ok((sheet, events.first().filter(|_| after > 0).map(|it| it.1.at)))
    }

    /// Returns the figures of the last `periods` minutes, hours or days, the current one included.
    pub async fn insight(&self, step: BucketWidth, periods: u32) -> Result<InsightFacts> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let reader = self.core.reader(&keys);
        let mut wanted = vec![Period::of(step, now)];
        while wanted.len() < periods as usize {
            wanted.extend(wanted.last().map(|it| it.previous()));
        }
        wanted.reverse();
        let counted = self.core.fetch::<InsightRow>(&keys, COUNTED).await?.as_ref().map(counted_of).unwrap_or_default();
        let (mut found, since) = match step {
            BucketWidth::Minute => self.lately(&keys, counted.index).await?,
            BucketWidth::Hour | BucketWidth::Day => (self.kept_figures(&keys, &wanted).await?, None),
        };
        let since = since.filter(|it| wanted.first().is_some_and(|first| first.begins < *it));
        let figure = |period: Period| found.remove(&period).unwrap_or_else(|| PeriodFigures::none_of(period));
        let last: Option<Stored<LogRow>> = reader.last_of(LOG).await?;
        Ok(InsightFacts {
            figures: wanted.into_iter().map(figure).collect(),
            since,
            behind: last.map_or(0, |it| it.record.index).saturating_sub(counted.index),
            counted,
            flows: self.policies.flows().await?,
            now,
        })
    }
}

fn counted_of(row: &Stored<InsightRow>) -> CountProgress {
    match &row.record {
        InsightRow::Counted(counted) => counted.clone(),
        // A row of figures cannot have this id: opening a row compares its id with its content.
        InsightRow::Figures(_) => CountProgress::default(),
    }
}
