//! `/set-up/{secret}`: the one-time link that creates the first account.

use std::collections::BTreeSet;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template as _;
use countersign_domain::identity::account::{LinkPurpose, PersonRole};
use countersign_domain::primitives::id::GroupName;
use countersign_service::error::{Error, Result};
use countersign_service::identity::accounts::NewAccount;
use countersign_service::identity::password_hash::PASSWORD_CHARS_MIN;
use countersign_service::policies::Policies;
use serde::Deserialize;

use super::sign_in_view::{RoleChoice, SetUpPage};
use crate::pages::shared::anonymous_session::{AnonymousSession, SignInCapabilities, signed_in};
use crate::pages::shared::form::AnonymousForm;
use crate::pages::shared::format::html;
use crate::pages::shared::layout::PageLayout;
use crate::pages::shared::return_path::LocalPath;
use crate::pages::shared::safe_text::SafeLine;
use crate::state::EdgeConfig;

/// Maximum number of groups in one form.
const GROUPS_MAX: usize = 32;

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct SetUpForm {
    username: String,
    password: String,
    groups: String,
    role: String,
}

/// `GET /set-up/{secret}`.
pub async fn show(app: SignInCapabilities, request: HttpRequest, secret: web::Path<String>) -> Result<HttpResponse> {
    let link = app.identity.link_of(&secret).await?;
    // Links of other purposes exist, but must not be usable or detectable here.
    if !matches!(link.record.purpose, LinkPurpose::SetUp {}) {
        return Err(Error::NotFound("link"));
    }
    let groups = only_group(&app.policies).await?.map(|it| it.to_string()).unwrap_or_default();
    let typed = SetUpForm { groups, role: "reviewer".to_owned(), ..SetUpForm::default() };
    Ok(page(&app.edge, &request, StatusCode::OK, &typed, None))
}

/// Returns the group of the stages of all active policies, if there is exactly one. The form proposes no other group,
/// because a reviewer in a group that no policy asks could approve nothing.
async fn only_group(policies: &Policies) -> Result<Option<GroupName>> {
    let mut asked = BTreeSet::new();
    for flow in policies.flows().await? {
        let policy = policies.active_policy(&flow).await?;
        asked.extend(policy.approval().stages().iter().flat_map(|it| it.groups().clone()));
    }
    Ok(if asked.len() == 1 { asked.pop_first() } else { None })
}

/// `POST /set-up/{secret}`.
pub async fn submit(
    app: SignInCapabilities,
    request: HttpRequest,
    sent: AnonymousForm<SetUpForm>,
    secret: web::Path<String>,
) -> Result<HttpResponse> {
    let (_, form) = sent.parts();
    // The fields are read before the link is used, so that a typing error does not use it up.
    let made = match new_account(&form) {
        Ok(new) => app.identity.use_set_up_link(&secret, &new, form.password.clone()).await,
        Err(error) => Err(error),
    };
    match made {
        Ok((person, session)) => Ok(signed_in(&app, &person, session, &LocalPath::inbox())),
        // Only mistakes in the form can be corrected, so other errors get their own page.
        Err(Error::Invalid { pointer, detail }) => {
            let problem = format!("{}: {detail}.", label(&pointer));
            Ok(page(&app.edge, &request, StatusCode::UNPROCESSABLE_ENTITY, &form, Some(problem)))
        }
        Err(error) => Err(error),
    }
}

fn new_account(form: &SetUpForm) -> Result<NewAccount> {
    let role = match form.role.as_str() {
        "reviewer" => PersonRole::Reviewer,
        "admin" => PersonRole::Admin,
        _ => return Err(Error::invalid("/role", "choose reviewer or administrator")),
    };
    let named = form.groups.split([',', ' ']).map(str::trim).filter(|it| !it.is_empty());
    let groups: std::result::Result<BTreeSet<GroupName>, _> = named.take(GROUPS_MAX).map(GroupName::try_from).collect();
    let groups = groups.map_err(|error| Error::invalid("/groups", error.to_string()))?;
    Ok(NewAccount { name: form.username.trim().to_owned(), role, groups })
}

fn label(pointer: &str) -> &'static str {
    match pointer {
        "/name" => "User name",
        "/password" => "Password",
        "/groups" => "Groups",
        "/role" => "Role",
        _ => "The form",
    }
}

fn page(
    edge: &EdgeConfig,
    request: &HttpRequest,
    status: StatusCode,
    typed: &SetUpForm,
    problem: Option<String>,
) -> HttpResponse {
    let door = AnonymousSession::of(edge, request);
    let page = SetUpPage {
        shell: PageLayout::anonymous(),
        action: request.path().to_owned(),
        csrf: door.csrf().shown(),
        purpose: "This is the first account of this gateway.".to_owned(),
        // The typed fields are shown again after a mistake, but never the password.
        username: SafeLine::new(typed.username.as_str()),
        groups: SafeLine::new(typed.groups.as_str()),
        role: if typed.role == "admin" { RoleChoice::Admin } else { RoleChoice::Reviewer },
        password_chars_min: PASSWORD_CHARS_MIN,
        problem,
    };
    door.with_secret_cookie(edge, html(status, page.render()))
}
