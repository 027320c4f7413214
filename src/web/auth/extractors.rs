//! Who asks: a person with a cookie, or a machine with a token. The one place that lets anybody in.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use actix_web::cookie::{Cookie, SameSite};
use actix_web::dev::Payload;
use actix_web::http::header;
use actix_web::{FromRequest, HttpRequest, web};
use serde::Deserialize;

use super::csrf::CsrfToken;
use super::permissions;
use super::permissions::CallerRole;
use crate::domain::identity::account::Token;
use crate::domain::interrupts::SignedPostId;
use crate::domain::interrupts::signed_post::SignedPost;
use crate::domain::primitives::id::TokenId;
use crate::service::Stored;
use crate::service::error::Error;
use crate::service::identity::session::SignedIn;
use crate::web::api::json_body::JsonBytes;
use crate::web::api::problem::Problem;
use crate::web::limits::request_body::{BodyAllowance, BodySender};
use crate::web::rate_limit_key;
use crate::web::state::AppState;

/// A machine whose role may call this route.
#[derive(Clone, Debug)]
pub struct Machine(pub Arc<Stored<Token>>);

/// A machine whose role may call this route, as its token is remembered, and what it sends: for calls that the store looks at
/// again when they commit, and that are decided on the token as it stands wherever they do not.
#[derive(Clone, Debug)]
pub struct CachedTokenMachine {
    pub token: Arc<Stored<Token>>,
    pub body: JsonBytes,
}

/// A machine whose role may call this route, by its token or by its signature over what it posts.
#[derive(Clone, Debug)]
pub struct PostCaller {
    pub token: Arc<Stored<Token>>,
    pub body: JsonBytes,
    /// The name of the post, where it is signed.
    pub post: Option<SignedPostId>,
}

/// `?source=`: the id of the token whose holder signed.
#[derive(Deserialize)]
struct SourceQuery {
    source: Option<String>,
}

/// A person who is signed in.
#[derive(Clone, Debug)]
pub struct Person {
    pub signed_in: SignedIn,
    /// What forms of this session carry.
    pub csrf: CsrfToken,
}

type ExtractorFuture<T> = Pin<Box<dyn Future<Output = Result<T, Problem>>>>;

impl FromRequest for Machine {
    type Error = Problem;
    type Future = ExtractorFuture<Self>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let app = app_of(&request);
            let token = match bearer(&request) {
                Some(text) => app.service.token_of(&text).await.map(Arc::new),
                None => Err(Error::Unauthenticated),
            };
            admitted(&request, &app, token).map(Self).map_err(|error| Problem::of(&request, error))
        })
    }
}

impl FromRequest for CachedTokenMachine {
    type Error = Problem;
    type Future = ExtractorFuture<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, body) = (request.clone(), JsonBytes::from_request(request, payload));
        Box::pin(async move {
            let app = app_of(&request);
            let token = match bearer(&request) {
                Some(text) => app.service.presumed_token_of(&text).await,
                None => Err(Error::Unauthenticated),
            };
            let token = admitted(&request, &app, token).map_err(|error| Problem::of(&request, error))?;
            let body = read_body(&token, (&request, &app), body).await?;
            Ok(Self { token, body })
        })
    }
}

impl FromRequest for PostCaller {
    type Error = Problem;
    type Future = ExtractorFuture<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, body) = (request.clone(), JsonBytes::from_request(request, payload));
        Box::pin(async move {
            let app = app_of(&request);
            let admit = async |token| match admitted(&request, &app, token) {
                Ok(token) => Ok(token),
                Err(error) => Err(Problem::of(&request, error)),
            };
            let Some(text) = bearer(&request) else {
                let address = app.edge.peers.asker_of(&request);
                let share = BodyAllowance::of(BodySender::Address(&address), &request, app.edge.body_bytes_max);
                let heard = app.edge.hearing.read_body(Some(share), body).await;
                let body = heard.map_err(|error| Problem::of(&request, error))?.sent?;
                let known = signed(&request, &app, body.sent()).await;
                let (token, post) = match known {
                    Ok((token, post)) => (Ok(Arc::new(token)), Some(post)),
                    Err(error) => (Err(error), None),
                };
                return Ok(Self { token: admit(token).await?, body, post });
            };
            // Nobody is named beside a token; what could be no name is refused all the same.
            let known = match source_of(&request) {
                Ok(_) => app.service.token_of(&text).await.map(Arc::new),
                Err(error) => Err(error),
            };
            // Whose it is, is asked before it is read.
            let token = admit(known).await?;
            let body = read_body(&token, (&request, &app), body).await?;
            Ok(Self { token, body, post: None })
        })
    }
}

/// The token whose holder signed a post, by Standard Webhooks, and the post's own name.
async fn signed(request: &HttpRequest, app: &AppState, body: &[u8]) -> Result<(Stored<Token>, SignedPostId), Error> {
    let header = |name| one_header(request, name).ok_or(Error::Unauthenticated);
    let (id, timestamp) = (header("webhook-id")?, header("webhook-timestamp")?);
    let post = SignedPost { id, timestamp, signatures: header("webhook-signature")?, body };
    let source = source_of(request).map_err(|_| Error::Unauthenticated)?.ok_or(Error::Unauthenticated)?;
    let token = app.service.sender_of(source.as_str(), &post).await?;
    let named = format!("{}/{id}", token.record.id);
    app.edge.posts.take(named.as_str(), app.service.now()).map_err(|_| Error::TooMany)?;
    Ok((token, SignedPostId::new(id, body)))
}

/// Whose token the holder of a secret says to post by.
fn source_of(request: &HttpRequest) -> Result<Option<TokenId>, Error> {
    let query = web::Query::<SourceQuery>::from_query(request.query_string());
    let named =
        query.map_err(|_| Error::invalid("", "the query has a name or a value that this call does not take"))?;
    let read =
        |it: String| TokenId::try_from(it.as_str()).map_err(|_| Error::invalid("/source", "this is no id of a token"));
    named.into_inner().source.map(read).transpose()
}

/// A header that is there once: of two, nobody says which one counts.
fn one_header<'r>(request: &'r HttpRequest, name: &str) -> Option<&'r str> {
    let mut all = request.headers().get_all(name);
    let only = all.next()?;
    if all.next().is_some() { None } else { only.to_str().ok() }
}

/// Whoever is known, does not ask too often, and has a role that may call this route.
fn admitted(
    request: &HttpRequest,
    app: &AppState,
    token: Result<Arc<Stored<Token>>, Error>,
) -> Result<Arc<Stored<Token>>, Error> {
    let token = token?;
    let taken = app.edge.requests.take(token.record.id.as_str(), app.service.now());
    taken.map_err(|_| Error::TooMany)?;
    rate_limit_key::is_for(request, app, token.record.id.as_str())?;
    let route = request.match_pattern().unwrap_or_default();
    app.service.mark_seen(&format!("token/{}", token.record.id));
    permissions::admit(CallerRole::Machine(token.record.role), request.method(), &route)?;
    Ok(token)
}

/// What a machine that was let in sends. If that took its time, its token must stand at the end of it, too.
pub async fn read_body(
    token: &Stored<Token>,
    (request, app): (&HttpRequest, &AppState),
    body: impl Future<Output = Result<JsonBytes, Problem>>,
) -> Result<JsonBytes, Problem> {
    let failed = |error| Problem::of(request, error);
    let share = BodyAllowance::of(BodySender::Token(token.record.id.as_str()), request, app.edge.body_bytes_max);
    let heard = app.edge.hearing.read_body(Some(share), body).await.map_err(failed)?;
    let sent = heard.sent?;
    if heard.late {
        app.service.token_is_current(token).await.map_err(failed)?;
    }
    Ok(sent)
}

impl FromRequest for Person {
    type Error = Problem;
    type Future = ExtractorFuture<Self>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let app = app_of(&request);
            let secret = request.cookie(cookie_name(&app)).map(|it| it.value().to_owned());
            let secret = secret.ok_or_else(|| Problem::of(&request, Error::Unauthenticated))?;
            let signed_in = app.service.session_of(&secret).await.map_err(|error| Problem::of(&request, error))?;
            app.service.mark_seen(&format!("session/{}", signed_in.session.record.id));
            app.service.mark_seen(&format!("account/{}", signed_in.account.record.id));
            rate_limit_key::is_for(&request, &app, signed_in.account.record.id.as_str())
                .map_err(|error| Problem::of(&request, error))?;
            let route = request.match_pattern().unwrap_or_default();
            permissions::admit(CallerRole::Person(signed_in.account.record.role), request.method(), &route)
                .map_err(|error| Problem::of(&request, error))?;
            Ok(Self { signed_in, csrf: CsrfToken::of(&secret) })
        })
    }
}

/// What the gateway serves from.
pub fn app_of(request: &HttpRequest) -> web::Data<AppState> {
    request.app_data::<web::Data<AppState>>().expect("the server gives every handler the app").clone()
}

fn bearer(request: &HttpRequest) -> Option<String> {
    let value = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

/// `__Host-` where the origin is secure: no other host or path can set it then.
pub fn cookie_name(app: &AppState) -> &'static str {
    if app.edge.secure { "__Host-countersign" } else { "countersign" }
}

/// The cookie that carries a session's secret.
pub fn session_cookie(app: &AppState, secret: String) -> Cookie<'static> {
    Cookie::build(cookie_name(app), secret)
        .path("/")
        .http_only(true)
        .secure(app.edge.secure)
        .same_site(SameSite::Lax)
        .finish()
}
