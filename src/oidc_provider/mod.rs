//! The OpenID provider: where to send a browser, and what the provider says of whoever comes back.
//!
//! Only its own signed word counts, fetched by ourselves with the code that the browser brought, and checked against
//! what this very sign-in asked. Metadata and keys are fetched when they are first needed, so that a provider that is
//! down stops nobody else.

mod http;
mod id_token;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use openidconnect::core::{
    CoreAuthDisplay, CoreAuthenticationFlow, CoreClaimName, CoreClaimType, CoreClient, CoreClientAuthMethod,
    CoreGrantType, CoreIdToken, CoreJsonWebKey, CoreJweContentEncryptionAlgorithm, CoreJweKeyManagementAlgorithm,
    CoreResponseMode, CoreResponseType, CoreSubjectIdentifierType,
};
use openidconnect::{
    AdditionalProviderMetadata, AuthType, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndSessionUrl,
    EndpointMaybeSet, EndpointNotSet, EndpointSet, IssuerUrl, LogoutRequest, Nonce, PkceCodeChallenge,
    PkceCodeVerifier, PostLogoutRedirectUrl, ProviderMetadata, RedirectUrl, Scope, TokenResponse as _,
};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use url::Url;

use crate::clock::Clock;
use crate::config::OidcConfig;
use crate::domain::identity::oidc_identity::{OidcIdentity, SignInRejected};
use crate::domain::primitives::secret::Secret;
use crate::domain::primitives::time::Timestamp;
use http::ProviderHttp;

/// What a provider publishes about itself changes rarely.
const METADATA_LIFE: Duration = Duration::from_secs(3600);
/// How soon its keys are asked for again. Tokens that name unknown keys could otherwise make us knock at every one.
const KEYS_PACE: Duration = Duration::from_secs(10);
/// A provider that did not answer is left alone for so long, or everybody would wait behind everybody else.
const FAILURE_PACE: Duration = Duration::from_secs(3);
/// A provider's own words are the provider's: as many of them stand in the log.
const LOGGED_CHARS_MAX: usize = 100;
/// Where a browser comes back to: the route of that name.
const RETURN_PATH: &str = "/sign-in/oidc/return";
/// Where it comes back to after signing out there.
const LEFT_PATH: &str = "/sign-in";

/// What later standards add to what a provider says about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct MetadataExtensions {
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
    end_session_endpoint: Option<EndSessionUrl>,
}

impl AdditionalProviderMetadata for MetadataExtensions {}

type OidcMetadata = ProviderMetadata<
    MetadataExtensions,
    CoreAuthDisplay,
    CoreClientAuthMethod,
    CoreClaimName,
    CoreClaimType,
    CoreGrantType,
    CoreJweContentEncryptionAlgorithm,
    CoreJweKeyManagementAlgorithm,
    CoreJsonWebKey,
    CoreResponseMode,
    CoreResponseType,
    CoreSubjectIdentifierType,
>;

type OidcClient =
    CoreClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointMaybeSet, EndpointMaybeSet>;

#[derive(Clone)]
struct CachedMetadata {
    metadata: Arc<OidcMetadata>,
    at: Timestamp,
}

/// What is remembered of a provider.
#[derive(Default)]
struct ProviderCache {
    known: Option<CachedMetadata>,
    failed_at: Option<Timestamp>,
}

/// The secrets of one sign-in, known to this gateway alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuthorizationSecrets {
    /// What the provider's word must repeat.
    pub nonce: Secret<String>,
    /// What only who began it can show.
    pub verifier: Secret<String>,
}

/// What a provider says by way of the browser.
#[derive(Clone, Debug)]
pub enum AuthorizationResult {
    Code(Secret<String>),
    /// No, for the reason with this name.
    No(String),
}

/// What a browser brought back.
#[derive(Clone, Debug)]
pub struct AuthorizationResponse {
    /// What it says: what the provider's word is fetched with, or no.
    pub said: AuthorizationResult,
    /// Who says to have sent it.
    pub issuer: Option<String>,
}

/// Why a gateway cannot use its provider at all.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The configuration says something that is no address.
    #[error("the provider's or the gateway's own address cannot be used")]
    Address,
    /// The file with one more authority has none.
    #[error("the certificates in `oidc.ca_file` cannot be used")]
    Certificates(#[source] reqwest::Error),
}

/// The provider that a configuration names.
pub struct Provider {
    pub settings: OidcConfig,
    issuer: IssuerUrl,
    comes_back_to: RedirectUrl,
    left_to: PostLogoutRedirectUrl,
    http: ProviderHttp,
    clock: Arc<dyn Clock>,
    memory: Mutex<ProviderCache>,
}

impl Provider {
    /// Nothing is asked of it yet.
    pub fn new(settings: OidcConfig, public_url: &str, clock: Arc<dyn Clock>) -> Result<Self, ProviderError> {
        let address = |_| ProviderError::Address;
        let issuer = IssuerUrl::new(settings.issuer.clone()).map_err(address)?;
        Ok(Self {
            comes_back_to: RedirectUrl::new(format!("{public_url}{RETURN_PATH}")).map_err(address)?,
            left_to: PostLogoutRedirectUrl::new(format!("{public_url}{LEFT_PATH}")).map_err(address)?,
            http: ProviderHttp::new(issuer.url(), settings.authority.as_deref())
                .map_err(ProviderError::Certificates)?,
            issuer,
            memory: Mutex::default(),
            settings,
            clock,
        })
    }

    /// Where to send a browser so that its person signs in there.
    pub async fn ask(&self, state: &str, errand: &AuthorizationSecrets) -> Result<String, SignInRejected> {
        let client = self.client(&self.known().await?.metadata);
        let verifier = PkceCodeVerifier::new(errand.verifier.expose().clone());
        let (state, nonce) = (CsrfToken::new(state.to_owned()), Nonce::new(errand.nonce.expose().clone()));
        let request = client
            .authorize_url(CoreAuthenticationFlow::AuthorizationCode, move || state, move || nonce)
            .add_scopes(self.settings.scopes.iter().filter(|it| *it != "openid").cloned().map(Scope::new))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
        Ok(request.url().0.into())
    }

    /// Who it is that came back, by the provider's own word.
    pub async fn answer(
        &self,
        answer: &AuthorizationResponse,
        errand: &AuthorizationSecrets,
    ) -> Result<OidcIdentity, SignInRejected> {
        let known = self.known().await?;
        self.check_sender(&known.metadata, answer.issuer.as_deref())?;
        let code = match &answer.said {
            AuthorizationResult::Code(code) => code,
            AuthorizationResult::No(reason) => return Err(meaning(reason)),
        };
        let token = self.redeem(&known.metadata, code, errand).await?;
        match id_token::identity(self, &known.metadata, &token, errand) {
            // Keys rotate: one that is not known yet may be known to the provider by now.
            Err(id_token::IdTokenError::UnknownKey) => {
                let known = self.refresh_metadata(&known).await?;
                id_token::identity(self, &known.metadata, &token, errand).map_err(SignInRejected::from)
            }
            other => other.map_err(SignInRejected::from),
        }
    }

    /// Where to send a browser so that its person is signed out there, too; nowhere, if the provider has no such
    /// place or cannot be asked.
    pub async fn leave(&self, hint: &str) -> Option<String> {
        let known = self.known().await.ok()?;
        let place = known.metadata.additional_metadata().end_session_endpoint.clone()?;
        let token: CoreIdToken = hint.parse().ok()?;
        let request = LogoutRequest::from(place)
            .set_id_token_hint(&token)
            .set_client_id(ClientId::new(self.settings.client_id.clone()))
            .set_post_logout_redirect_uri(self.left_to.clone());
        Some(request.http_get_url().into())
    }

    /// RFC 9207: a provider that says who it is in every answer is not confused with another one.
    fn check_sender(&self, metadata: &OidcMetadata, sender: Option<&str>) -> Result<(), SignInRejected> {
        let announced = metadata.additional_metadata().authorization_response_iss_parameter_supported;
        match sender {
            Some(sender) if sender == self.settings.issuer => Ok(()),
            None if !announced => Ok(()),
            _ => Err(SignInRejected::WrongProvider),
        }
    }

    async fn redeem(
        &self,
        metadata: &OidcMetadata,
        code: &Secret<String>,
        errand: &AuthorizationSecrets,
    ) -> Result<CoreIdToken, SignInRejected> {
        let code = AuthorizationCode::new(code.expose().clone());
        let client = self.client(metadata);
        let request = client.exchange_code(code).map_err(|error| {
            tracing::warn!(%error, "the OpenID provider names no place for tokens");
            SignInRejected::ProviderDown
        })?;
        let request = request.set_pkce_verifier(PkceCodeVerifier::new(errand.verifier.expose().clone()));
        match request.request_async(&self.http).await {
            Ok(tokens) => tokens.id_token().cloned().ok_or(SignInRejected::BadSignature),
            Err(openidconnect::RequestTokenError::ServerResponse(said)) => {
                let word: String = said.error().to_string().chars().take(LOGGED_CHARS_MAX).collect();
                tracing::warn!(?word, "the OpenID provider gives nothing for the code");
                Err(SignInRejected::Refused)
            }
            Err(openidconnect::RequestTokenError::Request(error)) => {
                tracing::warn!(why = reason(&error), "the OpenID provider gives no tokens");
                Err(SignInRejected::ProviderDown)
            }
            // What cannot be read is not repeated: it may be a token.
            Err(_) => {
                tracing::warn!("what the OpenID provider gives for the code cannot be read");
                Err(SignInRejected::ProviderDown)
            }
        }
    }

    fn client(&self, metadata: &OidcMetadata) -> OidcClient {
        let secret = self.settings.client_secret.as_ref().map(|it| ClientSecret::new(it.expose().clone()));
        let id = ClientId::new(self.settings.client_id.clone());
        let client = CoreClient::from_provider_metadata(metadata.clone(), id, secret);
        client.set_redirect_uri(self.comes_back_to.clone()).set_auth_type(way_to_authenticate(metadata))
    }

    async fn known(&self) -> Result<CachedMetadata, SignInRejected> {
        let (mut memory, now) = (self.memory.lock().await, self.clock.now());
        match &memory.known {
            Some(it) if it.at.until(now) < METADATA_LIFE => Ok(it.clone()),
            _ => self.discover(&mut memory, now).await,
        }
    }

    /// Metadata and keys again, unless somebody fetched them just before.
    async fn refresh_metadata(&self, old: &CachedMetadata) -> Result<CachedMetadata, SignInRejected> {
        let (mut memory, now) = (self.memory.lock().await, self.clock.now());
        match &memory.known {
            Some(it) if it.at > old.at || it.at.until(now) < KEYS_PACE => Ok(it.clone()),
            _ => self.discover(&mut memory, now).await,
        }
    }

    async fn discover(&self, memory: &mut ProviderCache, now: Timestamp) -> Result<CachedMetadata, SignInRejected> {
        if memory.failed_at.is_some_and(|it| it.until(now) < FAILURE_PACE) {
            return Err(SignInRejected::ProviderDown);
        }
        memory.failed_at = Some(now);
        let metadata = OidcMetadata::discover_async(self.issuer.clone(), &self.http).await.map_err(|error| {
            tracing::warn!(why = reason(&error), "the OpenID provider cannot be used");
            SignInRejected::ProviderDown
        })?;
        if !is_private(self.issuer.url(), &metadata) {
            tracing::warn!("the OpenID provider's own places are not https");
            return Err(SignInRejected::ProviderDown);
        }
        memory.failed_at = None;
        Ok(memory.known.insert(CachedMetadata { metadata: Arc::new(metadata), at: now }).clone())
    }
}

/// A provider that is reached by https sends nobody elsewhere: code, secret, keys and the word about a person would go
/// there unprotected. What is asked over HTTP was refused before; the rest is where browsers are sent.
fn is_private(issuer: &Url, metadata: &OidcMetadata) -> bool {
    let leaves_by = metadata.additional_metadata().end_session_endpoint.as_ref();
    let places = [
        Some(metadata.authorization_endpoint().url()),
        Some(metadata.jwks_uri().url()),
        metadata.token_endpoint().map(|it| it.url()),
        leaves_by.map(|it| it.url()),
    ];
    issuer.scheme() == "http" || places.into_iter().flatten().all(|it| it.scheme() == "https")
}

/// What a provider means by a word of refusal.
fn meaning(reason: &str) -> SignInRejected {
    match reason {
        "server_error" | "temporarily_unavailable" => SignInRejected::ProviderDown,
        _ => SignInRejected::Refused,
    }
}

/// The secret goes into the header, unless the provider takes it in the body alone.
fn way_to_authenticate(metadata: &OidcMetadata) -> AuthType {
    match metadata.token_endpoint_auth_methods_supported() {
        Some(ways)
            if ways.contains(&CoreClientAuthMethod::ClientSecretPost)
                && !ways.contains(&CoreClientAuthMethod::ClientSecretBasic) =>
        {
            AuthType::RequestBody
        }
        _ => AuthType::BasicAuth,
    }
}

/// What went wrong, down to the last cause, without what was sent or received.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let mut causes = vec![error.to_string()];
    let mut next = error.source();
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    causes.join(": ")
}
