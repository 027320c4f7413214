//! Sample pages of accounts and halts.

use super::sample::{line, moment, shell};
use crate::pages::identity::account_view::{AccountPage, PasswordPage, SessionRow};
use crate::pages::identity::people_view::{
    LinkRow, PeoplePage, PersonEditability, PersonFormInput, PersonPage, PersonRow, SecretPage, TokenFormInput,
    TokenRow, TokensPage,
};
use crate::pages::operations::halt_view::{
    ActiveHaltRow, HaltConfirmPage, HaltPage, LiftOption, LiftRequestRow, ScopeCard,
};
use crate::pages::shared::findings::FindingRow;
use crate::pages::shared::layout::{PageLayout, TimestampView, Tone};
use crate::pages::shared::safe_text::{SafeLine, SafeText};

fn ago(words: &str) -> TimestampView {
    moment("2026-11-03T12:00:00.000Z", "3 Nov 2026, 12:00 UTC", words)
}

pub fn emergency() -> HaltPage {
    let choice = |value, words| LiftOption { value, words };
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
    let row = |what| ActiveHaltRow {
        what,
        by: Some(line("ana")),
        at: Some(ago("2 h ago")),
        reason: SafeText::new("The planner pays the wrong people.\u{202e}"),
    };
    let lifting = LiftRequestRow {
        what: "proposing and verifying",
        what_value: "both",
        by: line("gus"),
        at: ago("5 min ago"),
        reason: SafeText::new("The planner is fixed."),
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
    HaltPage {
        shell: shell(2),
        csrf: "csrf-1".to_owned(),
        scopes: vec![whole, payments],
        all_stopped: false,
        may_stop: true,
        chosen: "all".to_owned(),
        reason: line(""),
    }
}

fn person(name: &str, role: &'static str, groups: &[&str]) -> PersonRow {
    PersonRow {
        url: format!("/people/{name}"),
        name: line(name),
        role,
        groups: groups.iter().map(|it| line(it)).collect(),
        disabled: name == "sam",
        way: "a password",
        created: ago("20 days ago"),
        changed: (name != "gus").then(|| (line("gus"), ago("2 h ago"))),
        seen: Some(ago("5 min ago")),
        me: name == "gus",
    }
}

pub fn people() -> PeoplePage {
    PeoplePage {
        shell: shell(2),
        csrf: "csrf-1".to_owned(),
        people: vec![
            person("dana\u{202e}", "reviewer", &["finance", "leads"]),
            person("gus", "admin", &[]),
            person("sam", "auditor", &[]),
        ],
        links: vec![LinkRow {
            id: "link-1".to_owned(),
            words: "invitation as reviewer in finance".to_owned(),
            name: line("ana"),
            by: line("gus"),
            until: ago("in 2 days"),
        }],
        may_change: true,
        typed: PersonFormInput { role: "reviewer".to_owned(), ..PersonFormInput::default() },
    }
}

pub fn person_page() -> PersonPage {
    PersonPage {
        shell: shell(2),
        csrf: "csrf-1".to_owned(),
        person: person("dana", "reviewer", &["finance", "leads"]),
        changing: PersonEditability::Open,
        typed: PersonFormInput {
            name: "dana".to_owned(),
            role: "reviewer".to_owned(),
            groups: "finance, leads".to_owned(),
        },
        sessions: 2,
        passkeys: 1,
        mail: Some(line("ben@example.org")),
        slowed: Some(ago("in 3 min")),
    }
}

/// A finding with markup, which every page shows as text.
pub fn finding() -> FindingRow {
    FindingRow {
        word: "Problem",
        tone: Tone::Bad,
        detail: SafeLine::new("In the flow <payments>, stage 1 needs 1 reviewer of finance, and 0 can vote."),
        remedy: SafeLine::new("Add a reviewer."),
    }
}

pub fn secret() -> SecretPage {
    SecretPage {
        shell: shell(2),
        title: "Invitation for ana".to_owned(),
        lead: "Send this link only to the invited person.",
        label: "Link",
        secret: "https://gate.example/password/one-time".to_owned(),
        until: Some(ago("in 3 days")),
        note: None,
        findings: vec![finding()],
        back: "/people",
        back_words: "Back to People",
    }
}

pub fn tokens() -> TokensPage {
    let token = |name: &str, role, revoked| TokenRow {
        id: format!("0192f0c1{name}"),
        name: line(name),
        role,
        owner: line("platform"),
        excludes: Vec::new(),
        owner_exists: false,
        flow: Some(line("payments")),
        nodes: vec![line("planner")],
        revoked,
        used: (!revoked).then(|| ago("5 min ago")),
        created: ago("20 days ago"),
    };
    TokensPage {
        shell: shell(2),
        csrf: "csrf-1".to_owned(),
        tokens: vec![token("orders", "agent", false), token("old", "writer", true)],
        flows: vec![line("payments")],
        may_change: true,
        typed: TokenFormInput { role: "agent".to_owned(), ..TokenFormInput::default() },
    }
}

pub fn account() -> AccountPage {
    let session = |id: &str, this| SessionRow {
        id: id.to_owned(),
        this,
        origin: this.then(|| (line("Firefox on Linux"), line("192.0.2.0/24"))),
        began: ago("2 h ago"),
        seen: Some(ago("5 min ago")),
        ends: ago("in 10 h"),
    };
    AccountPage {
        shell: shell(2),
        csrf: "csrf-1".to_owned(),
        name: line("dana"),
        role: "reviewer",
        groups: vec![line("finance")],
        mail: "dana@example.org".to_owned(),
        digest: true,
        mail_problem: Some(
            "This is not a valid email address. Enter one like name@example.org. Your setting is unchanged.".to_owned(),
        ),
        has_password: true,
        password_chars_min: 12,
        sessions: vec![session("s1", true), session("s2", false)],
        problem: Some("The current password is wrong. Your password is unchanged.".to_owned()),
    }
}

pub fn password() -> PasswordPage {
    PasswordPage {
        shell: PageLayout::anonymous(),
        action: "/password/one-time".to_owned(),
        csrf: "csrf-0".to_owned(),
        title: "Welcome",
        name: line("ana"),
        invited: Some(("reviewer", vec![line("finance")])),
        by: line("gus"),
        password_chars_min: 12,
        problem: None,
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
        consequences: vec!["The gateway accepts no proposals.", "An administrator can lift the halt."],
        expects: "done",
        reason: SafeText::new("The planner pays the wrong people."),
        stops: true,
    }
}
