//! Counts and times as heights and words.

use std::time::Duration;

use crate::web::pages::log::insight_view::{Bar, Chart, ChartTable};

/// How wide a period is in a chart's own measure, and the bar in it.
const SLOT: usize = 10;
const MARGIN: usize = 1;

/// How high a chart is in its own measure.
pub const HEIGHT: u64 = 1_000;

/// What is more than nothing can be seen.
const LEAST: u64 = 8;

/// What a scale of times ends with: each divides into two that people say.
const TIMES_SECS: [u64; 19] = [
    2, 10, 20, 60, 120, 600, 1_200, 3_600, 7_200, 14_400, 43_200, 86_400, 172_800, 345_600, 864_000, 1_728_000,
    3_456_000, 8_640_000, 17_280_000,
];

/// What is drawn of a period: a height, and perhaps a line above it.
pub struct ChartPoint {
    pub value: u64,
    /// Up to where the line goes.
    pub mark: Option<u64>,
    pub words: String,
}

/// What a chart says of itself.
pub struct ChartLabels {
    pub id: &'static str,
    pub title: &'static str,
    pub told: String,
    /// Its first and its last period.
    pub ends: (String, String),
    pub table: ChartTable,
}

/// A chart of numbers of things.
pub fn of_counts(titled: ChartLabels, drawn: Vec<ChartPoint>) -> Chart {
    let top = top_of_counts(highest(&drawn));
    chart(titled, drawn, (top, top.to_string(), (top / 2).to_string()))
}

/// A chart of times, in milliseconds.
pub fn of_times(titled: ChartLabels, drawn: Vec<ChartPoint>) -> Chart {
    let top = top_of_times(Duration::from_millis(highest(&drawn)));
    let millis = u64::try_from(top.as_millis()).unwrap_or(u64::MAX);
    chart(titled, drawn, (millis, lasting(top), lasting(top / 2)))
}

fn highest(drawn: &[ChartPoint]) -> u64 {
    drawn.iter().map(|it| it.value.max(it.mark.unwrap_or_default())).max().unwrap_or_default()
}

fn chart(titled: ChartLabels, drawn: Vec<ChartPoint>, (top, top_words, middle): (u64, String, String)) -> Chart {
    let width = SLOT * drawn.len();
    let bar = |(place, it): (usize, ChartPoint)| {
        let height = share(it.value, top, HEIGHT);
        let left = place * SLOT;
        let mark = it.mark.map(|mark| {
            let (above, begin, end) = (HEIGHT - share(mark, top, HEIGHT), HEIGHT - height, left + SLOT - MARGIN);
            format!("M{} {above}V{begin}M{} {above}H{end}", left + SLOT / 2, left + MARGIN)
        });
        Bar { x: left + MARGIN, y: HEIGHT - height, height, mark, words: it.words }
    };
    let (from, to) = titled.ends;
    Chart {
        id: titled.id,
        title: titled.title,
        told: titled.told,
        width,
        bars: drawn.into_iter().enumerate().map(bar).collect(),
        top: top_words,
        middle,
        from,
        to,
        table: titled.table,
    }
}

/// A part of a whole, in the whole's measure; a little where there is anything.
pub fn share(part: u64, whole: u64, measure: u64) -> u64 {
    if part == 0 || whole == 0 {
        return 0;
    }
    let share = u128::from(part) * u128::from(measure) / u128::from(whole);
    u64::try_from(share).unwrap_or(measure).clamp(LEAST, measure)
}

/// The first round number that is not below, with a whole half.
fn top_of_counts(highest: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        let found = [2, 4, 10].into_iter().map(|it| power.saturating_mul(it)).find(|it| *it >= highest);
        match found {
            Some(top) => return top,
            None => power = power.saturating_mul(10),
        }
    }
}

fn top_of_times(highest: Duration) -> Duration {
    let found = TIMES_SECS.into_iter().map(Duration::from_secs).find(|it| *it >= highest);
    found.unwrap_or(highest)
}

/// A length of time that is known to a sixteenth, in as many digits.
pub fn lasting(time: Duration) -> String {
    let millis = time.as_millis();
    let in_unit = |unit: u128, name: &str| {
        let tenths = (millis * 10 + unit / 2) / unit;
        match (tenths / 10, tenths % 10) {
            (whole, tenth) if whole < 10 && tenth > 0 => format!("{whole}.{tenth} {name}"),
            _ => format!("{} {name}", (millis + unit / 2) / unit),
        }
    };
    match millis {
        0..1_000 => "under 1 s".to_owned(),
        1_000..60_000 => in_unit(1_000, "s"),
        60_000..3_600_000 => in_unit(60_000, "min"),
        3_600_000..172_800_000 => in_unit(3_600_000, "h"),
        _ => in_unit(86_400_000, "days"),
    }
}

#[cfg(test)]
mod tests;
