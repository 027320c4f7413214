//! Sample pages of delegations.

use super::sample::{line, moment, shell};
use crate::pages::identity::delegations_view::{
    DelegatePage, DelegationLengthOption, DelegationOptionState, DelegationRow, DelegationStatusView, DelegationsPage,
    NewDelegationForm,
};
use crate::pages::identity::passkeys_view::{PasskeyChallengeView, PasskeyConfirmationView};

fn row(from: &str, to: &str, standing: DelegationStatusView) -> DelegationRow {
    DelegationRow {
        id: "0192f0c1".to_owned(),
        from: line(from),
        to: line(to),
        since: moment("2026-11-03T12:00:00.000Z", "3 Nov 2026, 12:00 UTC", "2 h ago"),
        until: moment("2026-11-10T12:00:00.000Z", "10 Nov 2026, 12:00 UTC", "in 6 days"),
        standing,
    }
}

pub fn delegations() -> DelegationsPage {
    let at = moment("2026-11-03T13:00:00.000Z", "3 Nov 2026, 13:00 UTC", "1 h ago");
    let ended = DelegationStatusView::Ended { by: line("gus"), at };
    let length = |hours, words, chosen| DelegationLengthOption { hours, words, chosen };
    DelegationsPage {
        shell: shell(2),
        csrf: "csrf-1".to_owned(),
        naming: Some(NewDelegationForm {
            to: line("dana"),
            lengths: vec![
                length(24, "1 day", DelegationOptionState::No),
                length(168, "1 week", DelegationOptionState::Yes),
            ],
        }),
        given: vec![
            row("ana", "dana", DelegationStatusView::Now),
            row("ana", "sam", ended),
            row("ana", "sam", DelegationStatusView::Over),
        ],
        received: vec![row("mira", "ana", DelegationStatusView::Now)],
        all: None,
    }
}

pub fn delegations_watched() -> DelegationsPage {
    DelegationsPage {
        naming: None,
        given: vec![],
        received: vec![],
        all: Some(vec![row("mira", "ana", DelegationStatusView::NowForOthers)]),
        ..delegations()
    }
}

pub fn delegate() -> DelegatePage {
    DelegatePage {
        shell: shell(2),
        csrf: "csrf-1".to_owned(),
        to: line("dana"),
        hours: 168,
        until: moment("2026-11-10T12:00:00.000Z", "10 Nov 2026, 12:00 UTC", "in 7 days"),
        groups: vec![line("finance"), line("security")],
        confirm: PasskeyConfirmationView::Password,
        problem: Some("Not done: the password is wrong.".to_owned()),
    }
}

pub fn delegate_signed() -> DelegatePage {
    let asking = PasskeyChallengeView {
        rp_id: "localhost".to_owned(),
        challenge: "Y2hhbGxlbmdl".to_owned(),
        allow: "a b".to_owned(),
    };
    DelegatePage { confirm: PasskeyConfirmationView::Passkey(asking), problem: None, ..delegate() }
}
