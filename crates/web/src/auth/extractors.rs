//! Authenticates requests, by session cookie for people and by bearer token or signature for machines.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use actix_web::cookie::{Cookie, SameSite};
use actix_web::dev::Payload;
use actix_web::http::header;
use actix_web::{FromRequest, HttpRequest, web};
use countersign_domain::identity::account::Token;
use countersign_domain::interrupts::SignedPostId;
use countersign_domain::interrupts::signed_post::SignedPost;
use countersign_domain::primitives::id::TokenId;
use countersign_service::Stored;
use countersign_service::error::{Error, TokenRefusal};
use countersign_service::identity::Identity;
use countersign_service::identity::session::SignedIn;
use countersign_service::interrupts::Interrupts;
use countersign_service::log::Log;
use countersign_service::platform::core::Core;
use serde::Deserialize;

use super::csrf::CsrfToken;
use super::permissions;
use super::permissions::CallerRole;
use crate::api::json_body::JsonBytes;
use crate::api::problem::Problem;
use crate::body_limit::bytes_max;
use crate::limits::request_body::{BodyAllowance, BodySender};
use crate::rate_limit_key;
use crate::state::{Capability, EdgeConfig, FromState as _, capabilities};

capabilities! {
    struct CallerCapabilities {
        core: Capability<Core>,
        edge: Capability<EdgeConfig>,
        identity: Capability<Identity>,
        interrupts: Capability<Interrupts>,
        log: Capability<Log>,
    }
}

/// A token whose role may call this route.
#[derive(Clone, Debug)]
pub struct Machine(pub Arc<Stored<Token>>);

/// A cached token whose role may call this route, and the body. For calls whose commit reads the token again; other
/// calls would act on a token that may be revoked.
#[derive(Clone, Debug)]
pub struct CachedTokenMachine {
    pub token: Arc<Stored<Token>>,
    pub body: JsonBytes,
}

/// A caller whose role may call this route, by token or by a signature over the post.
#[derive(Clone, Debug)]
pub struct PostCaller {
    pub token: Arc<Stored<Token>>,
    pub body: JsonBytes,
    /// The ID of a signed post.
    pub post: Option<SignedPostId>,
}

/// `?source=`: the ID of the token that signed the post.
#[derive(Deserialize)]
struct SourceQuery {
    source: Option<String>,
}

/// A signed-in person.
#[derive(Clone, Debug)]
pub struct Person {
    pub signed_in: SignedIn,
    /// The CSRF token of the session.
    pub csrf: CsrfToken,
}

type ExtractorFuture<T> = Pin<Box<dyn Future<Output = Result<T, Problem>>>>;

impl FromRequest for Machine {
    type Error = Problem;
    type Future = ExtractorFuture<Self>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let app = CallerCapabilities::of(&request);
            let token = match bearer(&request) {
                Some(text) => app.identity.token_of(&text).await.map(Arc::new),
                None => Err(no_bearer(&request)),
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
            let app = CallerCapabilities::of(&request);
            let token = match bearer(&request) {
                // The cached token saves a read here, because `verify` checks the token again inside its transaction.
                Some(text) => app.identity.presumed_token_of(&text).await,
                None => Err(no_bearer(&request)),
            };
            let token = admitted(&request, &app, token).map_err(|error| Problem::of(&request, error))?;
            let body = read_body(&token, &request, body).await?;
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
            let app = CallerCapabilities::of(&request);
            let admit = async |token| match admitted(&request, &app, token) {
                Ok(token) => Ok(token),
                Err(error) => Err(Problem::of(&request, error)),
            };
            // Without a token only a signature over the whole body identifies the sender. The address pays for its
            // memory.
            let Some(text) = bearer(&request) else {
                let address = app.edge.peers.asker_of(&request);
                let share = BodyAllowance::of(BodySender::Address(&address), &request, bytes_max(&request));
                let heard = app.edge.hearing.read_body(Some(share), body).await;
                let body = heard.map_err(|error| Problem::of(&request, error))?.sent?;
                let known = signed(&request, &app, body.sent()).await;
                let (token, post) = match known {
                    Ok((token, post)) => (Ok(Arc::new(token)), Some(post)),
                    Err(error) => (Err(error), None),
                };
                return Ok(Self { token: admit(token).await?, body, post });
            };
            // With a token `source` is not needed, but an invalid one is refused all the same.
            let known = match source_of(&request) {
                Ok(_) => app.identity.token_of(&text).await.map(Arc::new),
                Err(error) => Err(error),
            };
            // The sender is authenticated before the body is read, so that its memory counts for that sender.
            let token = admit(known).await?;
            let body = read_body(&token, &request, body).await?;
            Ok(Self { token, body, post: None })
        })
    }
}

/// Verifies the Standard Webhooks signature of a post, and returns its token and its ID.
async fn signed(
    request: &HttpRequest,
    app: &CallerCapabilities,
    body: &[u8],
) -> Result<(Stored<Token>, SignedPostId), Error> {
    let header = |name| one_header(request, name).ok_or(Error::Unauthenticated);
    // A missing header is the same error as a wrong signature: unauthenticated clients learn nothing about the check.
    let (id, timestamp) = (header("webhook-id")?, header("webhook-timestamp")?);
    let post = SignedPost { id, timestamp, signatures: header("webhook-signature")?, body };
    let source = source_of(request).map_err(|_| Error::Unauthenticated)?.ok_or(Error::Unauthenticated)?;
    let token = app.interrupts.sender_of(source.as_str(), &post).await?;
    let named = format!("{}/{id}", token.record.id);
    // The limit applies to authenticated posts only: others must not use up the budget of a real one.
    app.edge.posts.take(named.as_str(), app.core.now()).map_err(|_| Error::TooMany)?;
    Ok((token, SignedPostId::new(id, body)))
}

/// Reads `source`, the token that the sender claims.
fn source_of(request: &HttpRequest) -> Result<Option<TokenId>, Error> {
    let query = web::Query::<SourceQuery>::from_query(request.query_string());
    let named = query.map_err(|_| Error::invalid("", "the query has an unknown parameter or an invalid value"))?;
    let read = |it: String| {
        TokenId::try_from(it.as_str()).map_err(|_| Error::invalid("/source", "`source` must be the id of a token"))
    };
    named.into_inner().source.map(read).transpose()
}

/// Returns a header that occurs exactly once. With two values it would be unclear which one applies.
fn one_header<'r>(request: &'r HttpRequest, name: &str) -> Option<&'r str> {
    let mut all = request.headers().get_all(name);
    let only = all.next()?;
    // A repeated header is ambiguous: a proxy and the gateway could read different values.
    if all.next().is_some() { None } else { only.to_str().ok() }
}

/// Applies the rate limit and checks the role of an authenticated caller.
fn admitted(
    request: &HttpRequest,
    app: &CallerCapabilities,
    token: Result<Arc<Stored<Token>>, Error>,
) -> Result<Arc<Stored<Token>>, Error> {
    // An invalid token takes nothing from any budget, because it identifies no caller.
    let token = token?;
    // The rate limit comes before the role check, so that refused requests count too.
    let taken = app.edge.requests.take(token.record.id.as_str(), app.core.now());
    taken.map_err(|_| Error::TooMany)?;
    rate_limit_key::is_for(request, token.record.id.as_str())?;
    let route = request.match_pattern().unwrap_or_default();
    // A refused role still proves that the token is in use, so its last use is noted before the role check.
    app.identity.mark_seen(&format!("token/{}", token.record.id));
    permissions::admit(CallerRole::Machine(token.record.role), request.method(), &route)?;
    Ok(token)
}

/// Reads the body of an authenticated caller. If that took time, the token is checked again, because it may have been
/// revoked.
pub async fn read_body(
    token: &Stored<Token>,
    request: &HttpRequest,
    body: impl Future<Output = Result<JsonBytes, Problem>>,
) -> Result<JsonBytes, Problem> {
    let app = CallerCapabilities::of(request);
    let failed = |error| Problem::of(request, error);
    let share = BodyAllowance::of(BodySender::Token(token.record.id.as_str()), request, bytes_max(request));
    let heard = app.edge.hearing.read_body(Some(share), body).await.map_err(failed)?;
    let sent = heard.sent?;
    if heard.late {
        // A slow body could otherwise be used after its token was revoked.
        app.log.token_is_current(token).await.map_err(failed)?;
    }
    Ok(sent)
}

impl FromRequest for Person {
    type Error = Problem;
    type Future = ExtractorFuture<Self>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let app = CallerCapabilities::of(&request);
            let secret = request.cookie(&cookie_name(&app.edge)).map(|it| it.value().to_owned());
            let secret = secret.ok_or_else(|| Problem::of(&request, Error::Unauthenticated))?;
            let signed_in = app.identity.session_of(&secret).await.map_err(|error| Problem::of(&request, error))?;
            app.identity.mark_seen(&format!("session/{}", signed_in.session.record.id));
            app.identity.mark_seen(&format!("account/{}", signed_in.account.record.id));
            rate_limit_key::is_for(&request, signed_in.account.record.id.as_str())
                .map_err(|error| Problem::of(&request, error))?;
            let route = request.match_pattern().unwrap_or_default();
            permissions::admit(CallerRole::Person(signed_in.account.record.role), request.method(), &route)
                .map_err(|error| Problem::of(&request, error))?;
            Ok(Self { signed_in, csrf: CsrfToken::of(&secret) })
        })
    }
}

/// Returns the error for a request without a bearer token.
fn no_bearer(request: &HttpRequest) -> Error {
    let is_missing = !request.headers().contains_key(header::AUTHORIZATION);
    Error::Token(if is_missing { TokenRefusal::Missing } else { TokenRefusal::Malformed })
}

fn bearer(request: &HttpRequest) -> Option<String> {
    let value = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    // RFC 7235 compares the scheme without regard to case.
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

/// Returns the cookie's name. On https the prefix `__Host-` prevents that another host or path sets the cookie.
pub fn cookie_name(edge: &EdgeConfig) -> String {
    named_cookie(edge, "countersign")
}

/// Returns the name of one of the cookies.
pub fn named_cookie(edge: &EdgeConfig, name: &str) -> String {
    // Browsers accept the `__Host-` prefix only over https, and then no subdomain can set the cookie.
    let prefix = if edge.secure { "__Host-" } else { "" };
    format!("{prefix}{name}{}", edge.cookie_suffix)
}

/// Builds the session cookie.
pub fn session_cookie(edge: &EdgeConfig, secret: String) -> Cookie<'static> {
    Cookie::build(cookie_name(edge), secret)
        .path("/")
        // Scripts have no use for the session secret, so a script cannot read it.
        .http_only(true)
        .secure(edge.secure)
        // `Lax` sends the cookie with links from emails and chats, and not with forms of other sites.
        .same_site(SameSite::Lax)
        .finish()
}
