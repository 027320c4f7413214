//! OpenID Connect client: authorization requests, code exchange, ID tokens and sign-out.
//!
//! The gateway believes only the ID token that it fetches itself with the browser's code, and checks it against the
//! secrets of this sign-in. Metadata and keys are fetched at first use, so that an unavailable provider does not
//! prevent other ways to sign in.

mod http;
mod id_token;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use countersign_domain::identity::oidc_identity::{ClaimMapping, OidcIdentity, SignInRejected};
use countersign_domain::primitives::secret::Secret;
use countersign_domain::primitives::time::Timestamp;
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
use http::ProviderHttp;

/// The lifetime of the cached metadata, which changes rarely.
const METADATA_LIFE: Duration = Duration::from_secs(3600);
/// The shortest interval between two requests for keys. Without it, tokens with unknown keys would cause a request
/// each.
const KEYS_PACE: Duration = Duration::from_secs(10);
/// The pause after a failed request. Without it each sign-in would wait for its own timeout, one after the other.
const FAILURE_PACE: Duration = Duration::from_secs(3);
/// The limit on texts of the provider in the server log.
const LOGGED_CHARS_MAX: usize = 100;
/// The path of the redirect URI.
const RETURN_PATH: &str = "/sign-in/oidc/return";
/// The path for the browser after a sign-out at the provider.
const LEFT_PATH: &str = "/sign-in";

/// Members of the metadata from newer standards.
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

/// The provider, and the rules that map its claims to accounts.
#[derive(Clone, Debug)]
pub struct OidcConfig {
    /// The provider's issuer URL, compared byte for byte.
    pub issuer: String,
    /// This gateway's client ID at the provider.
    pub client_id: String,
    /// This gateway's client secret. A public client has none.
    pub client_secret: Option<Secret<String>>,
    /// An additional trusted CA for the provider's certificate, as PEM.
    pub authority: Option<Vec<u8>>,
    /// The requested scopes in addition to `openid`.
    pub scopes: Vec<String>,
    /// The label of the button on the sign-in page.
    pub button: String,
    /// The claim that becomes the name of a new account.
    pub name_claim: String,
    /// The claim with the values that are mapped.
    pub groups_claim: String,
    /// The roles and groups of those values.
    pub mapping: ClaimMapping,
    /// The lifetime of a session after sign-in with the provider.
    pub session: Duration,
}

#[derive(Clone)]
struct CachedMetadata {
    metadata: Arc<OidcMetadata>,
    at: Timestamp,
}

/// The cached metadata of a provider.
#[derive(Default)]
struct ProviderCache {
    known: Option<CachedMetadata>,
    failed_at: Option<Timestamp>,
}

/// The secrets of one sign-in, which only this gateway knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuthorizationSecrets {
    /// The nonce, which the ID token must repeat.
    pub nonce: Secret<String>,
    /// The PKCE verifier, which proves that the code is redeemed by the client that requested it.
    pub verifier: Secret<String>,
}

/// The provider's response, transported by the browser.
#[derive(Clone, Debug)]
pub enum AuthorizationResult {
    Code(Secret<String>),
    /// The provider refused, with this error code.
    No(String),
}

/// The parameters with which the browser returns.
#[derive(Clone, Debug)]
pub struct AuthorizationResponse {
    /// The code for the token request, or the refusal.
    pub said: AuthorizationResult,
    /// The `iss` parameter: the claimed sender of the response.
    pub issuer: Option<String>,
}

/// The reason that the provider cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// A configured URL is invalid.
    #[error("the URL in `oidc.issuer` or `public_url` cannot be used")]
    Address,
    /// The configured file contains no certificate.
    #[error("the certificates in `oidc.ca_file` cannot be used")]
    Certificates(#[source] reqwest::Error),
}

/// The configured OpenID provider.
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
    /// Creates the client. It sends no request yet.
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

    /// Returns the authorization URL for the browser.
    pub async fn ask(&self, state: &str, errand: &AuthorizationSecrets) -> Result<String, SignInRejected> {
        let client = self.client(&self.known().await?.metadata);
        let verifier = PkceCodeVerifier::new(errand.verifier.expose().clone());
        let (state, nonce) = (CsrfToken::new(state.to_owned()), Nonce::new(errand.nonce.expose().clone()));
        let request = client
            .authorize_url(CoreAuthenticationFlow::AuthorizationCode, move || state, move || nonce)
            // The library adds `openid` itself, and some providers reject a scope that occurs twice.
            .add_scopes(self.settings.scopes.iter().filter(|it| *it != "openid").cloned().map(Scope::new))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
        Ok(request.url().0.into())
    }

    /// Exchanges the code, and returns the identity in the ID token.
    pub async fn answer(
        &self,
        answer: &AuthorizationResponse,
        errand: &AuthorizationSecrets,
    ) -> Result<OidcIdentity, SignInRejected> {
        let known = self.known().await?;
        // The sender is checked before the code is used, so that a code is never sent to the wrong provider.
        self.check_sender(&known.metadata, answer.issuer.as_deref())?;
        let code = match &answer.said {
            AuthorizationResult::Code(code) => code,
            AuthorizationResult::No(reason) => return Err(meaning(reason)),
        };
        let token = self.redeem(&known.metadata, code, errand).await?;
        match id_token::identity(self, &known.metadata, &token, errand) {
            // Keys rotate, so an unknown key may be in the provider's current key set.
            Err(id_token::IdTokenError::UnknownKey) => {
                let known = self.refresh_metadata(&known).await?;
                id_token::identity(self, &known.metadata, &token, errand).map_err(SignInRejected::from)
            }
            other => other.map_err(SignInRejected::from),
        }
    }

    /// Returns the URL that signs the person out at the provider. Returns `None` if the provider has no such endpoint
    /// or does not respond.
    pub async fn leave(&self, hint: &str) -> Option<String> {
        let known = self.known().await.ok()?;
        // The endpoint is optional. Without it the person stays signed in at the provider.
        let place = known.metadata.additional_metadata().end_session_endpoint.clone()?;
        let token: CoreIdToken = hint.parse().ok()?;
        let request = LogoutRequest::from(place)
            .set_id_token_hint(&token)
            .set_client_id(ClientId::new(self.settings.client_id.clone()))
            .set_post_logout_redirect_uri(self.left_to.clone());
        Some(request.http_get_url().into())
    }

    /// Checks the `iss` parameter (RFC 9207), which prevents mix-up attacks between providers.
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
            tracing::warn!(%error, "the metadata of the OpenID provider has no token endpoint");
            SignInRejected::ProviderDown
        })?;
        let request = request.set_pkce_verifier(PkceCodeVerifier::new(errand.verifier.expose().clone()));
        match request.request_async(&self.http).await {
            Ok(tokens) => tokens.id_token().cloned().ok_or(SignInRejected::BadSignature),
            Err(openidconnect::RequestTokenError::ServerResponse(said)) => {
                // The text comes from the provider, so it is cut and its control characters are escaped.
                let word: String = said.error().to_string().chars().take(LOGGED_CHARS_MAX).collect();
                tracing::warn!(?word, "the OpenID provider refused the authorization code");
                Err(SignInRejected::Refused)
            }
            Err(openidconnect::RequestTokenError::Request(error)) => {
                tracing::warn!(why = reason(&error), "the token request to the OpenID provider failed");
                Err(SignInRejected::ProviderDown)
            }
            // An unreadable response is not logged, because it can contain a token.
            Err(_) => {
                tracing::warn!("the token response of the OpenID provider cannot be read");
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
        // The lock is held during the request, so that concurrent sign-ins share one fetch.
        let (mut memory, now) = (self.memory.lock().await, self.clock.now());
        match &memory.known {
            Some(it) if it.at.until(now) < METADATA_LIFE => Ok(it.clone()),
            _ => self.discover(&mut memory, now).await,
        }
    }

    /// Fetches metadata and keys again, unless another request has just done so.
    async fn refresh_metadata(&self, old: &CachedMetadata) -> Result<CachedMetadata, SignInRejected> {
        let (mut memory, now) = (self.memory.lock().await, self.clock.now());
        match &memory.known {
            // Another sign-in may have fetched the keys while this one waited for the lock.
            Some(it) if it.at > old.at || it.at.until(now) < KEYS_PACE => Ok(it.clone()),
            _ => self.discover(&mut memory, now).await,
        }
    }

    async fn discover(&self, memory: &mut ProviderCache, now: Timestamp) -> Result<CachedMetadata, SignInRejected> {
        if memory.failed_at.is_some_and(|it| it.until(now) < FAILURE_PACE) {
            return Err(SignInRejected::ProviderDown);
        }
        // The failure is recorded in advance, because the request can be cancelled before it ends.
        memory.failed_at = Some(now);
        let metadata = OidcMetadata::discover_async(self.issuer.clone(), &self.http).await.map_err(|error| {
            tracing::warn!(why = reason(&error), "the OpenID provider cannot be used");
            SignInRejected::ProviderDown
        })?;
        if !is_private(self.issuer.url(), &metadata) {
            tracing::warn!("an endpoint of the OpenID provider is not https");
            return Err(SignInRejected::ProviderDown);
        }
        memory.failed_at = None;
        Ok(memory.known.insert(CachedMetadata { metadata: Arc::new(metadata), at: now }).clone())
    }
}

/// Returns true if every endpoint of a provider with https is https too. Code, secret, keys and tokens would cross the
/// network unencrypted otherwise. The HTTP client checks the URLs that it requests itself; these are the others, to
/// which browsers are sent.
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

/// Maps an OAuth error code to the reason of a refused sign-in.
fn meaning(reason: &str) -> SignInRejected {
    match reason {
        "server_error" | "temporarily_unavailable" => SignInRejected::ProviderDown,
        _ => SignInRejected::Refused,
    }
}

/// Sends the client secret in the header, unless the provider supports the body only.
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

/// Joins the error with its causes. None of them contains a request or a response.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let mut causes = vec![error.to_string()];
    let mut next = error.source();
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    causes.join(": ")
}
