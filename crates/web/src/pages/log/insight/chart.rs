//! Converts counts and times into the bars and labels of a chart.

use std::time::Duration;

use crate::pages::log::insight_view::{Bar, Chart, ChartTable};

/// Width of a period in user units, and the margin of its bar.
const SLOT: usize = 10;
const MARGIN: usize = 1;

/// Height of a chart in user units.
pub const HEIGHT: u64 = 1_000;

/// Minimum height of a bar, so that small counts stay visible.
const LEAST: u64 = 8;

/// Possible ends of a time scale. Half of each is also a round time.
const TIMES_SECS: [u64; 19] = [
    2, 10, 20, 60, 120, 600, 1_200, 3_600, 7_200, 14_400, 43_200, 86_400, 172_800, 345_600, 864_000, 1_728_000,
    3_456_000, 8_640_000, 17_280_000,
];

/// One period: the height of the bar, and the optional line above it.
pub struct ChartPoint {
    pub value: u64,
    /// End of the line above the bar.
    pub mark: Option<u64>,
    pub words: String,
}

/// Title, summary, ends and table of a chart.
pub struct ChartLabels {
    pub id: &'static str,
    pub title: &'static str,
    pub told: String,
    /// First and last period.
    pub ends: (String, String),
    pub table: ChartTable,
}

/// Returns a chart of counts.
pub fn of_counts(titled: ChartLabels, drawn: Vec<ChartPoint>) -> Chart {
    let top = top_of_counts(highest(&drawn));
    chart(titled, drawn, top, top.to_string(), (top / 2).to_string())
}

/// Returns a chart of times in milliseconds.
pub fn of_times(titled: ChartLabels, drawn: Vec<ChartPoint>) -> Chart {
    let top = top_of_times(Duration::from_millis(highest(&drawn)));
    let millis = u64::try_from(top.as_millis()).unwrap_or(u64::MAX);
    chart(titled, drawn, millis, lasting(top), lasting(top / 2))
}

fn highest(drawn: &[ChartPoint]) -> u64 {
    drawn.iter().map(|it| it.value.max(it.mark.unwrap_or_default())).max().unwrap_or_default()
}

fn chart(titled: ChartLabels, drawn: Vec<ChartPoint>, top: u64, top_words: String, middle: String) -> Chart {
    let width = SLOT * drawn.len();
    let bar = |(place, it): (usize, ChartPoint)| {
        let height = share(it.value, top, HEIGHT);
        let left = place * SLOT;
        let mark = it.mark.map(|mark| {
            // The y axis of SVG points down, so each height is subtracted from the height of the chart.
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

/// Scales `part / whole` to `measure`. Returns at least [`LEAST`] if the part is not zero.
pub fn share(part: u64, whole: u64, measure: u64) -> u64 {
    if part == 0 || whole == 0 {
        return 0;
    }
    // The product may exceed 64 bits, so it is computed with 128 bits.
    let share = u128::from(part) * u128::from(measure) / u128::from(whole);
    u64::try_from(share).unwrap_or(measure).clamp(LEAST, measure)
}

/// Returns the first round number that is not below `highest` and whose half is a whole number.
fn top_of_counts(highest: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        let found = [2, 4, 10].into_iter().map(|it| power.saturating_mul(it)).find(|it| *it >= highest);
        match found {
            Some(top) => return top,
            // Saturation ends the loop even for the largest count.
            None => power = power.saturating_mul(10),
        }
    }
}

fn top_of_times(highest: Duration) -> Duration {
    let found = TIMES_SECS.into_iter().map(Duration::from_secs).find(|it| *it >= highest);
    // A time beyond the last scale is its own end, so that no bar leaves the chart.
    found.unwrap_or(highest)
}

/// Formats a duration. Histograms are exact to a sixteenth, so more digits would be false precision.
pub fn lasting(time: Duration) -> String {
    let millis = time.as_millis();
    let in_unit = |unit: u128, name: &str| {
        // Half a unit is added first, because integer division rounds down.
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
