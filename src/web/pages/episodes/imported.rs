//! A run that was imported: what its files say, in its own words. Nothing of it is this gateway's.

use super::episode_view::{EpisodePage, EventRow, Head, ImportHead, Untold, Vouched};
use super::run_parts::{EVENTS_SHOWN, TEXT_CHARS_SHOWN, ended, file, outcomes, plan, says, shown, steps, summary};
use crate::domain::episode::event_line::{Record, moment_of, phase};
use crate::domain::episode::finding::Noted;
use crate::domain::episode::imported::{Standing, Voucher, cut};
use crate::domain::episode::verify::{Extent, Part, Report};
use crate::domain::primitives::time::Timestamp;
use crate::service::episodes::import::ImportedRun;
use crate::web::pages::shared::format::moment;
use crate::web::pages::shared::layout::{Shell, Tone};
use crate::web::pages::shared::safe_text::Line;

/// What could not be told of one run that a page lists; the rest is the same of other steps.
const UNTOLD_SHOWN: usize = 20;

pub(super) fn page(read: &ImportedRun, shell: Shell, now: Timestamp) -> EpisodePage {
    let (import, id) = (&read.import, &read.import.id);
    let state = read.run.state.clone().unwrap_or_default();
    let told: Vec<&Record> = read.run.lines.iter().map(|it| &it.record).filter(|it| !it.is_projection()).collect();
    let earlier = told.len().saturating_sub(EVENTS_SHOWN);
    let begun = state["episode"]["started_at"].as_str().and_then(moment_of).unwrap_or(import.at);
    EpisodePage {
        shell,
        thread: Line::new(id.as_str()),
        head: Head::Imported(Box::new(ImportHead {
            episode: Line::new(import.episode_id.as_str()),
            by: Line::new(import.by.as_str()),
            at: moment(import.at, now),
            vouched: vouched(&import.voucher, read.standing),
            untold: unconfirmed(&read.report).chain(notes(&read.report)).collect(),
        })),
        task: Line::new(shown(&state["goal"]["task"])),
        status: ended(import.status),
        summary: summary(&state),
        begun: moment(begun, now),
        plan: plan(&state),
        steps: steps(&state),
        earlier,
        events: told.iter().skip(earlier).map(|it| event(it, now)).collect(),
        outcomes: outcomes(&state["outcomes"]),
        files: import.files.iter().map(|it| file(id, &it.name)).collect(),
    }
}

fn vouched(voucher: &Voucher, standing: Standing) -> Vouched {
    match (voucher, standing) {
        (Voucher::Nobody {}, _) => Vouched::Nobody,
        (Voucher::Unchecked { kid }, _) => Vouched::Unchecked(Line::new(kid.as_str())),
        (Voucher::Gateway { kid }, Standing::Holds) => Vouched::Gateway(Line::new(kid.as_str())),
        (Voucher::Gateway { kid }, _) => Vouched::Revoked(Line::new(kid.as_str())),
        (Voucher::Other { issuer, kid, .. }, _) => {
            Vouched::Other { issuer: Line::new(issuer.as_str()), kid: Line::new(kid.as_str()) }
        }
    }
}

fn notes(report: &Report) -> impl Iterator<Item = Untold> {
    report.notes.iter().take(UNTOLD_SHOWN).filter_map(untold)
}

/// The parts that nothing in the folder confirms. Who signed is told in words of its own.
fn unconfirmed(report: &Report) -> impl Iterator<Item = Untold> {
    let parts = Part::ALL.into_iter().filter(|it| *it != Part::Signature);
    let unchecked = parts.filter(|it| report.parts.of(*it) == Some(Extent::Unchecked));
    unchecked.map(|it| Untold { file: Line::new(it.as_str()), about: None, words: "nothing in the files confirms it" })
}

/// Who signed is told in words of its own.
fn untold(note: &Noted) -> Option<Untold> {
    use crate::domain::episode::finding::Note;
    let about = note.about.as_deref().map(|it| Line::new(cut(it, TEXT_CHARS_SHOWN)));
    let own = matches!(note.code, Note::NotSigned | Note::SignatureUnchecked);
    (!own).then(|| Untold { file: Line::new(note.file.as_str()), about, words: note.code.detail() })
}

/// Whoever says of itself that it is a gateway is one name among others here.
fn event(record: &Record, now: Timestamp) -> EventRow {
    let what = record.event_type.as_deref().filter(|_| record.is(phase::RUNTIME)).unwrap_or(&record.phase);
    EventRow {
        what: Line::new(cut(what, TEXT_CHARS_SHOWN)),
        tone: Tone::Plain,
        who: Some(Line::new(cut(&record.agent_id, TEXT_CHARS_SHOWN))),
        review_url: None,
        says: says(record),
        at: moment(moment_of(&record.timestamp).unwrap_or(now), now),
    }
}
