//! View of an imported episode. Everything in it is an unverified claim of its files.

use countersign_domain::episode::event_line::{EventRecord, moment_of, phase};
use countersign_domain::episode::finding::RunNote;
use countersign_domain::episode::imported::{RunSigner, RunSignerStatus, cut};
use countersign_domain::episode::verify::{CheckExtent, RunReport, RunSection};
use countersign_domain::primitives::time::Timestamp;
use countersign_service::episodes::import::ImportedRun;

use super::episode_view::{
    EpisodeEventRow, EpisodeHeadView, EpisodePage, ImportHeader, ImportSignerView, UnverifiedRow,
};
use super::run_parts::{EVENTS_SHOWN, TEXT_CHARS_SHOWN, ended, file, outcomes, plan, says, shown, steps, summary};
use crate::pages::shared::format::moment;
use crate::pages::shared::layout::{PageLayout, Tone};
use crate::pages::shared::safe_text::SafeLine;

/// Maximum number of unverified parts on a page. More notes repeat the same findings for other steps.
const UNTOLD_SHOWN: usize = 20;

pub(super) fn page(read: &ImportedRun, shell: PageLayout, now: Timestamp) -> EpisodePage {
    let (import, id) = (&read.import, &read.import.id);
    let state = read.run.state.clone().unwrap_or_default();
    let told: Vec<&EventRecord> = read.run.lines.iter().map(|it| &it.record).filter(|it| !it.is_projection()).collect();
    let earlier = told.len().saturating_sub(EVENTS_SHOWN);
    // A file may state no time or an unreadable one, so the time of the import replaces it.
    let begun = state["episode"]["started_at"].as_str().and_then(moment_of).unwrap_or(import.at);
    EpisodePage {
        shell,
        thread: SafeLine::new(id.as_str()),
        head: EpisodeHeadView::Imported(Box::new(ImportHeader {
            episode: SafeLine::new(import.episode_id.as_str()),
            by: SafeLine::new(import.by.as_str()),
            at: moment(import.at, now),
            vouched: vouched(&import.voucher, read.standing),
            untold: unconfirmed(&read.report).chain(notes(&read.report)).collect(),
        })),
        task: SafeLine::new(shown(&state["goal"]["task"])),
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

fn vouched(voucher: &RunSigner, standing: RunSignerStatus) -> ImportSignerView {
    match (voucher, standing) {
        (RunSigner::Nobody {}, _) => ImportSignerView::Nobody,
        (RunSigner::Unchecked { kid }, _) => ImportSignerView::Unchecked(SafeLine::new(kid.as_str())),
        (RunSigner::Gateway { kid }, RunSignerStatus::Holds) => ImportSignerView::Gateway(SafeLine::new(kid.as_str())),
        // A key may be revoked after the import, so its present status decides the label.
        (RunSigner::Gateway { kid }, _) => ImportSignerView::Revoked(SafeLine::new(kid.as_str())),
        (RunSigner::Other { issuer, kid, .. }, _) => {
            ImportSignerView::Other { issuer: SafeLine::new(issuer.as_str()), kid: SafeLine::new(kid.as_str()) }
        }
    }
}

fn notes(report: &RunReport) -> impl Iterator<Item = UnverifiedRow> {
    report.notes.iter().take(UNTOLD_SHOWN).filter_map(untold)
}

/// Returns the parts that nothing in the folder confirms. The page shows the signature separately.
fn unconfirmed(report: &RunReport) -> impl Iterator<Item = UnverifiedRow> {
    let parts = RunSection::ALL.into_iter().filter(|it| *it != RunSection::Signature);
    let unchecked = parts.filter(|it| report.parts.of(*it) == Some(CheckExtent::Unchecked));
    unchecked.map(|it| UnverifiedRow {
        file: SafeLine::new(it.as_str()),
        about: None,
        words: "the files contain nothing that confirms this part",
    })
}

/// Converts a note. The page shows the signature separately, so its notes are left out.
fn untold(note: &RunNote) -> Option<UnverifiedRow> {
    use countersign_domain::episode::finding::Note;
    let about = note.about.as_deref().map(|it| SafeLine::new(cut(it, TEXT_CHARS_SHOWN)));
    // The signature has its own place on the page, so its notes are not repeated here.
    let own = matches!(note.code, Note::NotSigned | Note::SignatureUnchecked);
    (!own).then(|| UnverifiedRow { file: SafeLine::new(note.file.as_str()), about, words: note.code.detail() })
}

/// Converts an event. An imported file can claim to be a gateway, so every event is shown as an agent's claim.
fn event(record: &EventRecord, now: Timestamp) -> EpisodeEventRow {
    let what = record.event_type.as_deref().filter(|_| record.is(phase::RUNTIME)).unwrap_or(&record.phase);
    EpisodeEventRow {
        what: SafeLine::new(cut(what, TEXT_CHARS_SHOWN)),
        // The outcome is a claim of the file, so no colour supports it.
        tone: Tone::Plain,
        who: Some(SafeLine::new(cut(&record.agent_id, TEXT_CHARS_SHOWN))),
        // An imported file can name any review, so the page links to none.
        review_url: None,
        says: says(record),
        at: moment(moment_of(&record.timestamp).unwrap_or(now), now),
    }
}
