//! Samples of the screens about people, and of stopping.

use super::sample::{line, moment, shell};
use crate::web::pages::view::emergency::{EmergencyPage, HaltConfirmPage, LiftChoice, LiftingRow, ScopeCard, StopRow};
use crate::web::pages::view::shell::Moment;
use crate::web::pages::view::text::Prose;

fn ago(words: &str) -> Moment {
    moment("2026-11-03T12:00:00.000Z", "3 Nov 2026, 12:00 UTC", words)
}

pub fn emergency() -> EmergencyPage {
    let choice = |value, words| LiftChoice { value, words };
    let whole = ScopeCard {
        title: line("all flows"),
        value: "all".to_owned(),
        whole: true,
        rows: vec![],
        lifting: None,
        may_lift: true,
        choices: vec![],
        needs_two: true,
    };
    let row = |what| StopRow {
        what,
        by: Some(line("ana")),
        at: Some(ago("2 h ago")),
        reason: Prose::new("The planner pays the wrong people.\u{202e}"),
    };
    let lifting = LiftingRow {
        what: "proposing and verifying",
        what_value: "both",
        by: line("gus"),
        at: ago("5 min ago"),
        reason: Prose::new("The planner is fixed."),
        mine: false,
    };
    let payments = ScopeCard {
        title: line("payments"),
        value: "payments".to_owned(),
        whole: false,
        rows: vec![row("proposing"), row("verifying")],
        lifting: Some(lifting),
        choices: vec![choice("both", "proposing and verifying"), choice("proposing", "proposing")],
        ..whole.clone()
    };
    EmergencyPage {
        shell: shell(2),
        csrf: "csrf-1".to_owned(),
        scopes: vec![whole, payments],
        may_stop: true,
        chosen: "all".to_owned(),
        reason: line(""),
    }
}

pub fn emergency_confirm() -> HaltConfirmPage {
    HaltConfirmPage {
        shell: shell(2),
        action: "/emergency".to_owned(),
        csrf: "csrf-1".to_owned(),
        title: "Stop",
        what: "proposing and verifying",
        what_value: "both",
        scope: line("all flows"),
        scope_value: "all".to_owned(),
        consequences: vec!["Nothing can be proposed.", "An administrator lifts it."],
        reason: Prose::new("The planner pays the wrong people."),
        stops: true,
    }
}
