//! `/emergency`: halts flows and lifts halts.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use countersign_domain::identity::account::PersonRole;
use countersign_domain::operations::halt::{Halt, HaltRecord, LiftQuorum};
use countersign_domain::primitives::id::FlowId;
use countersign_domain::primitives::time::Timestamp;
use countersign_service::error::{Error, Result};
use countersign_service::identity::actor::Actor;
use countersign_service::operations::Operations;
use countersign_service::operations::halt::{HaltScope, HaltState};
use countersign_service::operations::halt_request::{HaltPreview, HaltRequest};
use serde::Deserialize;

use super::halt_view::{ActiveHaltRow, HaltConfirmPage, HaltPage, LiftOption, LiftRequestRow, ScopeCard};
use crate::pages::shared::flash::FlashQuery;
use crate::pages::shared::form::SignedInForm;
use crate::pages::shared::format::{html, moment, see_other};
use crate::pages::shared::layout::{FlashNotice, Tone};
use crate::pages::shared::responder::or_page_again;
use crate::pages::shared::safe_text::{SafeLine, SafeText};
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

const ADDRESS: &str = "/emergency";

/// Maximum length of a reason. One or two sentences are enough in an emergency.
const REASON_CHARS_MAX: usize = 500;

/// Form value of the scope that covers all flows.
const ALL: &str = "all";

/// Fields of the forms of this page. A field that a form leaves out is empty.
#[derive(Clone, Deserialize, Default)]
#[serde(default)]
pub struct HaltFields {
    scope: String,
    what: String,
    reason: String,
    confirmed: String,
    expects: String,
}

/// Notices after a submitted form, by the value of `?done=`.
const DONE: &[(&str, Tone, &str)] = &[
    ("stopped", Tone::Care, "Halted. The halt applies now, on every gateway."),
    ("lifted", Tone::Good, "Halt lifted. Agents and writers can continue."),
    ("asked", Tone::Care, "Lifting requested. The halt is lifted when a second administrator confirms."),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum HaltFormKind {
    Stop,
    Lift,
}

/// The halted activities, as forms send them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HaltAspect {
    Both,
    Proposing,
    Verifying,
}

impl HaltAspect {
    const fn value(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Proposing => "proposing",
            Self::Verifying => "verifying",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Both => "proposing and verifying",
            Self::Proposing => "proposing",
            Self::Verifying => "verifying",
        }
    }

    const fn of(proposing: bool, verifying: bool) -> Option<Self> {
        match (proposing, verifying) {
            (true, true) => Some(Self::Both),
            (true, false) => Some(Self::Proposing),
            (false, true) => Some(Self::Verifying),
            (false, false) => None,
        }
    }

    fn read(text: &str) -> Result<Self> {
        let all = [Self::Both, Self::Proposing, Self::Verifying];
        let found = all.into_iter().find(|it| it.value() == text);
        found.ok_or_else(|| Error::invalid("/what", "choose both, proposing or verifying"))
    }

    fn halt(self, reason: &str) -> Halt {
        Halt { proposing: self != Self::Verifying, verifying: self != Self::Proposing, reason: reason.to_owned() }
    }
}

/// `GET /emergency`.
pub async fn show(
    operations: Capability<Operations>,
    visitor: Visitor,
    done: web::Query<FlashQuery>,
) -> Result<HaltPage> {
    let notice = done.notice(DONE);
    page(&operations, &visitor, notice, &HaltFields::default()).await
}

/// Redirects a `GET` of an address that accepts only forms.
pub async fn back() -> HttpResponse {
    see_other(ADDRESS)
}

/// `POST /emergency`: halts a flow or all flows.
pub async fn stop(operations: Capability<Operations>, sent: SignedInForm<HaltFields>) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    submitted(&operations, &visitor, HaltFormKind::Stop, &form).await
}

/// `POST /emergency/lifting`: lifts a halt, or requests it if two administrators are needed.
pub async fn lift(operations: Capability<Operations>, sent: SignedInForm<HaltFields>) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    submitted(&operations, &visitor, HaltFormKind::Lift, &form).await
}

async fn submitted(
    operations: &Operations,
    visitor: &Visitor,
    kind: HaltFormKind,
    form: &HaltFields,
) -> Result<HttpResponse> {
    // Only a lifting needs the previewed outcome, because another administrator may act in between.
    let done = match (form.confirmed.as_str(), kind, previewed(form)) {
        ("yes", HaltFormKind::Stop, _) | ("yes", HaltFormKind::Lift, Some(_)) => {
            apply(operations, visitor, kind, form).await
        }
        _ => confirm(operations, visitor, kind, form).await,
    };
    or_page_again(done, async |notice| page(operations, visitor, Some(notice), form).await).await
}

/// Returns the form value of a preview. The confirm form sends it back, so that a changed outcome is detected.
const fn preview_value(preview: HaltPreview) -> &'static str {
    match preview {
        HaltPreview::Asked => "asked",
        HaltPreview::Done => "done",
    }
}

fn previewed(form: &HaltFields) -> Option<HaltPreview> {
    [HaltPreview::Asked, HaltPreview::Done].into_iter().find(|it| preview_value(*it) == form.expects)
}

fn halt_request(kind: HaltFormKind, halt: Halt) -> HaltRequest {
    match kind {
        HaltFormKind::Stop => HaltRequest::Stop(halt),
        HaltFormKind::Lift => HaltRequest::Lift(halt),
    }
}

fn scope_of(form: &HaltFields) -> Result<HaltScope> {
    match form.scope.as_str() {
        ALL => Ok(HaltScope::All),
        flow => Ok(HaltScope::Flow(FlowId::try_from(flow).map_err(|_| Error::NotFound("flow"))?)),
    }
}

fn reason_of(form: &HaltFields) -> Result<String> {
    let reason = form.reason.trim();
    // Characters are counted instead of bytes, so that every language gets the same length.
    if reason.is_empty() || reason.chars().count() > REASON_CHARS_MAX {
        return Err(Error::WrongState("Enter a reason of at most 500 characters"));
    }
    Ok(reason.to_owned())
}

async fn apply(
    operations: &Operations,
    visitor: &Visitor,
    kind: HaltFormKind,
    form: &HaltFields,
) -> Result<HttpResponse> {
    let (scope, halt) = (scope_of(form)?, HaltAspect::read(&form.what)?.halt(&reason_of(form)?));
    let me = Actor::Person(&visitor.0.signed_in.account);
    let state = operations.request_halt_as_previewed(me, &scope, &halt_request(kind, halt), previewed(form)).await?;
    // The new state decides the notice, because a lifting may still need a second administrator.
    let asked = state.stops.as_ref().is_some_and(|it| it.lifting.is_some());
    let done = match kind {
        HaltFormKind::Stop => "stopped",
        HaltFormKind::Lift if asked => "asked",
        HaltFormKind::Lift => "lifted",
    };
    // The redirect keeps a reload from sending the request again.
    Ok(see_other(&format!("{ADDRESS}?done={done}")))
}

async fn confirm(
    operations: &Operations,
    visitor: &Visitor,
    kind: HaltFormKind,
    form: &HaltFields,
) -> Result<HttpResponse> {
    let (scope, what, reason) = (scope_of(form)?, HaltAspect::read(&form.what)?, reason_of(form)?);
    let halts = operations.halts().await?;
    let state = halts.iter().find(|it| it.scope == scope).ok_or(Error::NotFound("flow"))?;
    let me = Actor::Person(&visitor.0.signed_in.account);
    // The preview applies the rules of the request, so a refusal appears before the confirmation.
    let preview = operations.preview_halt(me, &scope, &halt_request(kind, what.halt(&reason))).await?;
    let page = HaltConfirmPage {
        shell: visitor.shell(None).await?,
        action: match kind {
            HaltFormKind::Stop => ADDRESS.to_owned(),
            HaltFormKind::Lift => format!("{ADDRESS}/lifting"),
        },
        csrf: visitor.0.csrf.shown(),
        title: match kind {
            HaltFormKind::Stop => "Halt",
            HaltFormKind::Lift => "Lift the halt of",
        },
        what: what.words(),
        what_value: what.value(),
        scope: title_of(&scope),
        scope_value: value_of(&scope),
        consequences: consequences(kind, preview, what, needs(operations, state)),
        expects: preview_value(preview),
        reason: SafeText::new(reason),
        stops: kind == HaltFormKind::Stop,
    };
    Ok(html(StatusCode::OK, page.render()))
}

fn needs(operations: &Operations, state: &HaltState) -> LiftQuorum {
    operations.lift_needs(state.stops.as_ref())
}

fn consequences(kind: HaltFormKind, preview: HaltPreview, what: HaltAspect, needs: LiftQuorum) -> Vec<&'static str> {
    let mut lines = Vec::new();
    let two = needs == LiftQuorum::Two;
    match kind {
        HaltFormKind::Stop => {
            if what != HaltAspect::Verifying {
                lines.push("The gateway accepts no proposals, no new threads and no votes.");
            }
            if what != HaltAspect::Proposing {
                lines.push("The gateway authorizes no writer, not even one that repeats its request.");
            }
            // A writer that has started must still report, or the outcome of its write stays unknown.
            lines.push("Completed writes stay. Writers that are already authorized can still report their outcome.");
            lines.push(if two {
                "Two administrators are needed to lift the halt."
            } else {
                "An administrator can lift the halt."
            });
        }
        HaltFormKind::Lift if preview == HaltPreview::Asked => {
            lines.push("The halt is lifted when a second administrator confirms.");
        }
        // The second administrator completes the lifting, so no other request follows.
        HaltFormKind::Lift if two => lines.push("You are the second administrator: the halt is lifted immediately."),
        HaltFormKind::Lift => lines.push("The halt is lifted immediately."),
    }
    lines
}

fn title_of(scope: &HaltScope) -> SafeLine {
    match scope {
        HaltScope::All => SafeLine::new("all flows"),
        HaltScope::Flow(flow) => SafeLine::new(flow.as_str()),
    }
}

fn value_of(scope: &HaltScope) -> String {
    match scope {
        HaltScope::All => ALL.to_owned(),
        HaltScope::Flow(flow) => flow.to_string(),
    }
}

async fn page(
    operations: &Operations,
    visitor: &Visitor,
    notice: Option<FlashNotice>,
    typed: &HaltFields,
) -> Result<HaltPage> {
    let now = visitor.now();
    let halts = operations.halts().await?;
    let role = visitor.account().role;
    // A notice in a bookmarked or shared address may be outdated, because the halt may have been lifted since then.
    let stopped = halts.iter().any(|it| it.halt.proposing || it.halt.verifying);
    let notice = notice.filter(|it| stopped || it.tone != Tone::Care);
    Ok(HaltPage {
        shell: visitor.shell(notice).await?,
        csrf: visitor.0.csrf.shown(),
        scopes: halts.iter().map(|it| card(operations, visitor, it, now)).collect(),
        all_stopped: halts.iter().any(|it| it.scope == HaltScope::All && (it.halt.proposing || it.halt.verifying)),
        // Reviewers may halt too, because an emergency cannot wait for an administrator.
        may_stop: role != PersonRole::Auditor,
        chosen: if typed.scope.is_empty() { ALL.to_owned() } else { typed.scope.clone() },
        reason: SafeLine::new(typed.reason.as_str()),
    })
}

fn card(operations: &Operations, visitor: &Visitor, state: &HaltState, now: Timestamp) -> ScopeCard {
    let HaltState { scope, halt, stops } = state;
    let row = |what: HaltAspect, stop: Option<&HaltRecord>| ActiveHaltRow {
        what: what.words(),
        // A halt from the command line names no person, so the row leaves the name out.
        by: stop.filter(|it| !it.name.is_empty()).map(|it| SafeLine::new(it.name.as_str())),
        at: stop.map(|it| moment(it.at, now)),
        reason: SafeText::new(stop.map_or(halt.reason.as_str(), |it| it.reason.as_str())),
    };
    let mut rows = Vec::new();
    if halt.proposing {
        // Each activity has its own record, because different people may have halted them.
        rows.push(row(HaltAspect::Proposing, stops.as_ref().and_then(|it| it.proposing.as_ref())));
    }
    if halt.verifying {
        rows.push(row(HaltAspect::Verifying, stops.as_ref().and_then(|it| it.verifying.as_ref())));
    }
    let lifting = stops.as_ref().and_then(|it| it.lifting.as_ref()).and_then(|it| {
        // The request states the halt that remains, so the lifted part is the difference.
        let what = HaltAspect::of(halt.proposing && !it.proposing, halt.verifying && !it.verifying)?;
        Some(LiftRequestRow {
            what: what.words(),
            what_value: what.value(),
            by: SafeLine::new(it.name.as_str()),
            at: moment(it.at, now),
            reason: SafeText::new(it.reason.as_str()),
            // One administrator must not be both people of a lifting, so the page marks an own request.
            mine: it.person == visitor.account().id,
        })
    });
    // Only a halted activity can be lifted, so the other choices are left out.
    let choices = match HaltAspect::of(halt.proposing, halt.verifying) {
        Some(HaltAspect::Both) => vec![HaltAspect::Both, HaltAspect::Proposing, HaltAspect::Verifying],
        Some(one) => vec![one],
        None => Vec::new(),
    };
    let choice = |it: HaltAspect| LiftOption { value: it.value(), words: it.words() };
    ScopeCard {
        title: title_of(scope),
        value: value_of(scope),
        whole: *scope == HaltScope::All,
        rows,
        lifting,
        // Any reviewer may halt, but only an administrator may lift, so that a halt is easier than its end.
        may_lift: visitor.account().role == PersonRole::Admin,
        choices: choices.into_iter().map(choice).collect(),
        needs_two: needs(operations, state) == LiftQuorum::Two,
    }
}
