//! Sample pages of the inbox and of special reviews.

use super::sample::{SampleReview, line, moment, shell};
use crate::pages::identity::passkeys_view::{
    AddPasskeyForm, PasskeyAvailability, PasskeyChallengeView, PasskeyConfirmationView, PasskeyRow, PasskeysPage,
};
use crate::pages::identity::sign_in_view::{RedirectPage, RoleChoice, SetUpPage, SignInLinkPage, SignInPage};
use crate::pages::inbox::list_view::{
    ActiveMark, DecidedRow, InboxFilterOption, InboxPage, InboxScope, InboxTab, InboxTabKind, SearchForm,
    StageVotesView, WaitingRow,
};
use crate::pages::reviews::confirm_view::ConfirmPage;
use crate::pages::reviews::discussion_view::WithdrawalForm;
use crate::pages::reviews::edit_view::{EditField, EditPage};
use crate::pages::reviews::review_view::{ReviewDecisionView, ReviewPage, ReviewStatusView};
use crate::pages::shared::error_view::{ErrorAction, ErrorPage};
use crate::pages::shared::headline::{Headline, HeadlineChange};
use crate::pages::shared::layout::{DigestText, FlashNotice, PageLayout, TimestampView, Tone};
use crate::pages::shared::passkey_signing::{PasskeySignForm, PasskeySigningView};
use crate::pages::shared::proof_rows::DiffSideView;
use crate::pages::shared::safe_text::{SafePath, SafeText};
use crate::pages::shared::vote_as::{DelegatorRow, VotingSeatLink};
use crate::pages::shared::widgets::GateView;
use crate::pages::shared::widgets::RequesterView;
use crate::pages::shared::widgets::ReviewBadge;
use crate::pages::shared::widgets::Urgency;
use crate::pages::shared::widgets::{HoldOutcomeView, VerdictView, WriteUncertainty};
use crate::pages::threads::thread_view::{
    BranchRow, BranchStatusView, EndedReviewRow, EntryRow, OriginRow, ThreadPage, ThreadStatusView, WriteStatusView,
};

fn soon() -> TimestampView {
    moment("2026-11-03T14:32:00.000Z", "3 Nov 2026, 14:32 UTC", "in 12 min")
}

fn ago(words: &str) -> TimestampView {
    moment("2026-11-03T12:00:00.000Z", "3 Nov 2026, 12:00 UTC", words)
}

pub fn asking() -> PasskeyChallengeView {
    PasskeyChallengeView { rp_id: "gate.example".to_owned(), challenge: "AAAA".to_owned(), allow: String::new() }
}

pub fn passkeys() -> PasskeysPage {
    PasskeysPage {
        shell: shell(2),
        csrf: "csrf-0".to_owned(),
        place: PasskeyAvailability::Here(AddPasskeyForm {
            name: line(""),
            rp_id: "gate.example".to_owned(),
            challenge: "AAAA".to_owned(),
            user: "0192f0c1".to_owned(),
            user_name: "dana".to_owned(),
            confirm: PasskeyConfirmationView::Passkey(asking()),
        }),
        rows: vec![PasskeyRow {
            id: "AAAAAAAAAAAAAAAAAAAAAA".to_owned(),
            name: line("blue key"),
            added: ago("2 days ago"),
            used: Some(ago("2 h ago")),
            kept: "bound to one device",
            remove: asking(),
        }],
    }
}

pub fn passkeys_nowhere() -> PasskeysPage {
    PasskeysPage { place: PasskeyAvailability::Nowhere("http://127.0.0.1:8480".to_owned()), rows: vec![], ..passkeys() }
}

pub fn confirm_signed() -> ConfirmPage {
    let form = PasskeySignForm { asking: asking(), until: "2026-11-03T12:05:00.000Z".to_owned() };
    ConfirmPage { signing: PasskeySigningView::Must(form), ..confirm() }
}

pub fn confirm_typed() -> ConfirmPage {
    let problem = Some("The typed text is not the end of this digest.".to_owned());
    ConfirmPage { typing: Some("a1b2c3".to_owned()), problem, ..confirm() }
}

pub fn sign_in() -> SignInPage {
    SignInPage {
        shell: PageLayout::anonymous(),
        csrf: "csrf-0".to_owned(),
        next: "/".to_owned(),
        username: line("dana"),
        elsewhere: Some(line("Sign in with your organisation")),
        asks_password: true,
        problem: Some("User name and password do not match.".to_owned()),
        passkey: Some(asking()),
    }
}

pub fn set_up() -> SetUpPage {
    SetUpPage {
        shell: PageLayout::anonymous(),
        action: "/set-up/one-time".to_owned(),
        csrf: "csrf-0".to_owned(),
        purpose: "This is the first account of this gateway.".to_owned(),
        username: line(""),
        groups: line("reviewers"),
        role: RoleChoice::Reviewer,
        password_chars_min: 12,
        problem: None,
    }
}

pub fn leaving() -> RedirectPage {
    RedirectPage {
        shell: PageLayout::anonymous(),
        url: "https://id.example/auth?state=s".to_owned(),
        title: "Signing in".to_owned(),
        lead: "Your organisation's sign-in page opens and returns you here.".to_owned(),
    }
}

pub fn sign_in_link() -> SignInLinkPage {
    SignInLinkPage {
        person: line("ada"),
        shell: PageLayout::anonymous(),
        action: "/sign-in/one-time".to_owned(),
        csrf: "csrf-0".to_owned(),
        next: "/".to_owned(),
    }
}

pub fn error() -> ErrorPage {
    ErrorPage {
        shell: shell(2),
        status: 409,
        happened: "This review was decided while you were reading".to_owned(),
        kept: "sam denied it a moment ago. Your vote was not counted, and nothing was written.".to_owned(),
        action: ErrorAction { words: "See what was decided".to_owned(), url: "/reviews/0192f0c1".to_owned() },
        request_id: "req_01JBQ8".to_owned(),
    }
}

fn row(
    headline: Headline,
    thread: &str,
    urgency: Urgency,
    deadline: TimestampView,
    badges: Vec<ReviewBadge>,
) -> WaitingRow {
    let protected = headline.changes.iter().map(|it| it.path.clone()).take(2).collect();
    WaitingRow {
        tick: Some("0192f0c1".to_owned()),
        url: "/reviews/0192f0c1".to_owned(),
        headline,
        flow: line("payments"),
        thread: line(thread),
        protected,
        reasons: vec![line("payment.amount above 1000 requires approval")],
        on_behalf_of: Some(line("Mira Novak")),
        votes: StageVotesView { got: 1, need: 2, groups: vec![line("finance"), line("leads")] },
        deadline,
        urgency,
        badges,
    }
}

fn tabs() -> Vec<InboxTab> {
    let tab = |show: InboxTabKind, mark| InboxTab { url: format!("/?show={}", show.word()), words: show.words(), mark };
    vec![tab(InboxTabKind::Waiting, ActiveMark::On), tab(InboxTabKind::Mine, ActiveMark::Off)]
}

fn form() -> SearchForm {
    let choice = |it: &str, mark| InboxFilterOption { value: it.to_owned(), words: it.to_owned(), mark };
    SearchForm {
        typed: SafeText::new("pay\u{202e}ment"),
        show: vec![choice("waiting", ActiveMark::On), choice("past", ActiveMark::Off)],
        flows: vec![choice("payments", ActiveMark::Off)],
    }
}

pub fn inbox() -> InboxPage {
    let (small, rich) = (SampleReview::small().page().headline, SampleReview::rich().page().headline);
    let mut deploy = row(
        SampleReview::reaffirm().page().headline,
        "deploy-2026-11-03",
        Urgency::Calm,
        moment("2026-11-04T09:00:00.000Z", "4 Nov 2026, 09:00 UTC", "in 18 h"),
        vec![ReviewBadge::CannotDecide("proposed by your agent".to_owned())],
    );
    deploy.flow = line("deploys");
    deploy.reasons = vec![line("the last approval expired before the write")];
    let decided = |headline, outcome, by: Vec<&str>, at| DecidedRow {
        url: "/reviews/0192f0c0".to_owned(),
        headline,
        flow: line("payments"),
        thread: line("order-8790"),
        outcome,
        by: by.into_iter().map(line).collect(),
        at: ago(at),
    };
    InboxPage {
        shell: PageLayout {
            notice: Some(FlashNotice {
                tone: Tone::Good,
                words: "Approved. The receipt is valid for 10 minutes.".to_owned(),
            }),
            ..shell(2)
        },
        policies: vec![],
        interrupts: vec![super::interrupts::row()],
        interrupts_first: None,
        interrupts_next: Some("/?asked=1.i".to_owned()),
        deciding_several: Some("csrf-1".to_owned()),
        waiting: vec![
            row(small.clone(), "order-8812", Urgency::Soon, soon(), vec![ReviewBadge::Yours]),
            row(
                rich,
                "order-8813",
                Urgency::Calm,
                moment("2026-11-03T18:20:00.000Z", "3 Nov 2026, 18:20 UTC", "in 4 h"),
                vec![ReviewBadge::Voted, ReviewBadge::WriteOutcomeUnknown],
            ),
            deploy,
        ],
        decided: vec![
            decided(small.clone(), HoldOutcomeView::Approved, vec!["dana", "sam"], "2 h ago"),
            decided(small.clone(), HoldOutcomeView::Denied, vec!["sam"], "3 h ago"),
            decided(small, HoldOutcomeView::Expired, vec![], "yesterday"),
        ],
        tabs: tabs(),
        form: form(),
        scope: InboxScope::Overview,
        previous_url: None,
        next_url: Some("/?after=1".to_owned()),
    }
}

pub fn empty_inbox() -> InboxPage {
    InboxPage {
        shell: shell(0),
        policies: vec![],
        interrupts: vec![],
        interrupts_first: None,
        interrupts_next: None,
        waiting: vec![],
        decided: vec![],
        next_url: None,
        ..inbox()
    }
}

/// Returns a search without matches.
pub fn nothing_found() -> InboxPage {
    InboxPage {
        scope: InboxScope::Chosen(InboxTabKind::Everything),
        previous_url: Some("/?before=1".to_owned()),
        ..empty_inbox()
    }
}

pub fn confirm() -> ConfirmPage {
    let page = SampleReview::small().page();
    ConfirmPage {
        shell: shell(2),
        review_url: "/reviews/0192f0c1".to_owned(),
        action: "/reviews/0192f0c1/decision".to_owned(),
        csrf: "csrf-1".to_owned(),
        digest: DigestText::new(page.proof.digest.whole()),
        nonce: "nonce-2".to_owned(),
        stage: "0".to_owned(),
        absent: Some(absent()),
        verdict: VerdictView::Approve,
        headline: page.headline,
        call: page.call,
        usage: page.usage,
        flow: line("payments"),
        thread: line("order-8812"),
        deadline: soon(),
        expects: "waits",
        consequence: "With your vote 2 of 2 from finance have approved; security comes next.".to_owned(),
        comment: SafeText::new("Looks right,\nchecked with \"Mira\"."),
        browser_check: "match".to_owned(),
        doubt: WriteUncertainty::None,
        signing: PasskeySigningView::NotAsked,
        typing: None,
        problem: None,
    }
}

pub fn decided() -> ReviewPage {
    let mut page = SampleReview::small().page();
    page.standing = ReviewStatusView::Ended {
        outcome: HoldOutcomeView::Approved,
        by: vec![line("sam"), line("dana")],
        at: ago("2 h ago"),
        followed: "The receipt was used: database_writer has written.".to_owned(),
        next_url: None,
    };
    page.deciding = ReviewDecisionView::Over;
    page
}

pub fn doubtful() -> ReviewPage {
    let mut page = SampleReview::small().page();
    if let ReviewDecisionView::Open(form) = &mut page.deciding {
        form.doubt = WriteUncertainty::Unknown(line(
            "database_writer reserved version 3 at 14:02 UTC and never reported the outcome.",
        ));
        form.problem = Some("Tick the box to approve. Your vote was not counted.".to_owned());
    }
    page
}

fn absent() -> DelegatorRow {
    DelegatorRow { delegation: "0192f0c1".to_owned(), name: line("mira"), until: soon() }
}

/// Returns a review on which the reader votes for a delegator and could vote for others.
pub fn for_another() -> ReviewPage {
    let mut page = SampleReview::small().page();
    if let ReviewDecisionView::Open(form) = &mut page.deciding {
        form.absent = Some(absent());
        let other = |name: Option<&str>| VotingSeatLink { url: "/reviews/1?for=own".to_owned(), name: name.map(line) };
        form.places = vec![other(None), other(Some("sam"))];
    }
    page.withdrawing = Some(WithdrawalForm {
        action: "/reviews/0192f0c1/withdrawal".to_owned(),
        csrf: "csrf-1".to_owned(),
        nonce: "nonce-3".to_owned(),
        vote: "0".to_owned(),
        cast_by: Some(line("dana")),
    });
    page
}

pub fn own_agent() -> ReviewPage {
    let mut page = SampleReview::reaffirm().page();
    page.deciding = ReviewDecisionView::Closed("You own the agent that proposed it.".to_owned());
    page
}

fn branch(name: &str, words: &str) -> BranchRow {
    BranchRow {
        name: line(name),
        url: format!("/threads/branch-{name}"),
        version: 2,
        version_url: "/threads/order-8812/versions/2".to_owned(),
        became: BranchStatusView { words: words.to_owned(), tone: Tone::Plain, url: None },
    }
}

/// Returns a thread that is a branch.
pub fn of_another() -> ThreadPage {
    let origin = OriginRow {
        name: line("a"),
        thread: line("order-8812"),
        thread_url: "/threads/order-8812".to_owned(),
        version: 2,
        version_url: "/threads/order-8812/versions/2".to_owned(),
    };
    ThreadPage { origin: Some(origin), branches: Vec::new(), earlier_branches_url: None, ..thread() }
}

pub fn thread() -> ThreadPage {
    let digest = |digit: &str| DigestText::new(format!("sha256:{}", digit.repeat(32)));
    let entry = |version, step: &str, node: Option<&str>, gate, changed: &[&str], digit: &str, at: &str| EntryRow {
        version,
        step: step.to_owned(),
        node: node.map(line),
        gate,
        url: format!("/threads/order-8812/versions/{version}"),
        by: Some(RequesterView::Token { name: line("planner-agent"), owner: line("machines") }),
        changed: changed
            .iter()
            .map(|it| HeadlineChange {
                path: SafePath::new(*it),
                before: DiffSideView::Absent,
                after: DiffSideView::Nested,
            })
            .collect(),
        call: None,
        more_changed: 0,
        digest: digest(digit),
        at: ago(at),
        write: None,
    };
    let mut approved = entry(
        2,
        "proposed by",
        Some("planner"),
        GateView::Approved { review_url: "/reviews/0192f0c0".to_owned(), by: vec![line("dana"), line("sam")] },
        &["/target_user_id", "/payment/amount"],
        "7c",
        "2 h ago",
    );
    approved.write = Some(WriteStatusView { tone: Tone::Good, words: line("written by database_writer, fence 1") });
    ThreadPage {
        shell: shell(2),
        thread: line("order-8812"),
        title: Some(line("Refund for order 8812")),
        episode_url: Some("/threads/order-8812/episode".to_owned()),
        flow: line("payments"),
        on_behalf_of: Some(line("Mira Novak, customer care")),
        origin: None,
        branches: vec![branch("a", "Joined in version 3"), branch("b", "Outdated: the thread has moved on")],
        earlier_branches_url: Some("/threads/order-17?branches=1.branch-1#branches".to_owned()),
        status: ThreadStatusView::Held("/reviews/0192f0c1".to_owned()),
        standing: "The head is written and owes nothing.".to_owned(),
        head: 3,
        entries: vec![
            entry(3, "confirmed by", Some("database_writer"), GateView::Written, &["/result_ref"], "9e", "2 h ago"),
            approved,
            entry(1, "proposed by", Some("input_parser"), GateView::Auto, &["/raw_text"], "3b", "3 h ago"),
            entry(0, "created by the host", None, GateView::Auto, &[], "1a", "3 h ago"),
        ],
        ended: vec![EndedReviewRow {
            url: "/reviews/0192f0bf".to_owned(),
            headline: SampleReview::small().page().headline,
            outcome: HoldOutcomeView::Denied,
            at: ago("2 h ago"),
        }],
        older_url: None,
    }
}

/// Returns an edit page with two fields and a redacted value.
pub fn edit() -> EditPage {
    let field = |at: &str, value: &str| EditField {
        path: SafePath::new(at),
        name: format!("value:{at}"),
        value: SafeText::new(value),
    };
    EditPage {
        shell: shell(2),
        action: "/reviews/0192f0c1/edit".to_owned(),
        review_url: "/reviews/0192f0c1".to_owned(),
        csrf: "csrf-1".to_owned(),
        digest: format!("sha256:{}", "a".repeat(64)),
        headline: SampleReview::small().page().headline,
        fields: vec![field("/target_user_id", "42"), field("/payment/note", "\"as agreed\"")],
        hidden: true,
        steps: false,
        more: SafeText::new(""),
        why: SafeText::new("The order belongs to user 43."),
        errors: Vec::new(),
        problem: Some("This cannot be done: nobody would be left who could approve it.".to_owned()),
    }
}
