//! Settings of OpenID Connect sign-in: the provider, this gateway's client, and the claims that map to roles and
//! groups.

use std::fs;
use std::path::PathBuf;

use countersign_adapters::oidc_provider::OidcConfig;
use countersign_domain::identity::account::PersonRole;
use countersign_domain::identity::oidc_identity::{AdmissionRule, ClaimMapping};
use countersign_domain::primitives::id::GroupName;
use countersign_domain::primitives::secret::Secret;

use super::settings::ConfigLayers;
use super::{ConfigCode, ConfigError};

/// Secrets and certificates are short. The limit stops the reading of a large file that was named by mistake.
const FILE_BYTES_MAX: u64 = 256 * 1024;

const BUTTON_CHARS_MAX: usize = 60;

#[derive(Clone, Debug)]
pub struct SignInConfig {
    /// Whether sign-in with local passwords and links is enabled.
    pub local_accounts: bool,
    /// The OpenID provider, if one is configured.
    pub oidc: Option<OidcConfig>,
}

impl SignInConfig {
    pub(super) fn read(settings: &mut ConfigLayers) -> Result<Self, ConfigError> {
        let local_accounts = settings.flag("local_accounts")?;
        let oidc = read_provider(settings)?;
        // This combination would lock out every person, including administrators.
        if !local_accounts && oidc.is_none() {
            let problem = "without local accounts no one could sign in: set a provider in `oidc.issuer` first";
            return Err(settings.refuse(ConfigCode::BadValue, "local_accounts", problem));
        }
        Ok(Self { local_accounts, oidc })
    }
}

fn read_provider(settings: &mut ConfigLayers) -> Result<Option<OidcConfig>, ConfigError> {
    let issuer = settings.optional(
        "oidc.issuer",
        "the issuer URL of the provider: https:// without a query (http:// only for localhost)",
        |it| is_issuer(it).then(|| it.to_owned()),
    )?;
    let client_id = settings.optional("oidc.client_id", "the client id of this gateway at the provider", read_word)?;
    let client_secret = read_secret_of(settings, "oidc.client_secret", "oidc.client_secret_file")?;
    let authority = read_file(settings, "oidc.ca_file")?;
    let words = "words without spaces";
    let (scopes, groups_claim, name_claim) = (
        settings.list("oidc.scopes", words, read_word)?,
        settings.text("oidc.groups_claim", "the name of a claim", read_word)?,
        settings.text("oidc.name_claim", "the name of a claim", read_word)?,
    );
    let button = settings.text("oidc.button", "1 to 60 characters", read_button)?;
    let mapping = ClaimMapping {
        groups: settings.list("oidc.groups", "value=group", read_group)?,
        roles: settings.list("oidc.roles", "value=reviewer, value=auditor or value=admin", read_role)?,
        admit: settings.text("oidc.admit", "mapped or anybody", read_admit)?,
    };
    let session = settings.secs("oidc.session_secs", 60..=31_536_000)?;
    // All keys are read before this, so that a mistake is reported even if no provider is set.
    let Some(issuer) = issuer else { return Ok(None) };
    let Some(client_id) = client_id else {
        let problem = "it must be set, because `oidc.issuer` is set";
        return Err(settings.refuse(ConfigCode::BadValue, "oidc.client_id", problem));
    };
    Ok(Some(OidcConfig {
        issuer,
        client_id,
        client_secret,
        authority,
        scopes,
        button,
        name_claim,
        groups_claim,
        mapping,
        session,
    }))
}

/// Reads a secret from its own key or from the file that the other key names.
pub(super) fn read_secret_of(
    settings: &mut ConfigLayers,
    key: &str,
    file_key: &str,
) -> Result<Option<Secret<String>>, ConfigError> {
    let given = settings.optional(key, "a text", |it| Some(Secret::new(it.to_owned())))?;
    let file = read_file(settings, file_key)?;
    // Two sources are refused, because it would be unclear which of them is rotated.
    match (given, file) {
        (Some(_), Some(_)) => {
            let problem = format!("the secret is set twice, here and in `{key}`: remove one");
            Err(settings.refuse(ConfigCode::BadValue, file_key, &problem))
        }
        (Some(secret), None) => Ok(Some(secret)),
        (None, Some(bytes)) => match String::from_utf8(bytes) {
            // Editors append a line break, which is not part of the secret.
            Ok(text) if !text.trim().is_empty() => Ok(Some(Secret::new(text.trim().to_owned()))),
            _ => Err(settings.refuse(ConfigCode::BadValue, file_key, "the file is empty or not UTF-8 text")),
        },
        (None, None) => Ok(None),
    }
}

/// Reads the whole file that a key names.
pub(super) fn read_file(settings: &mut ConfigLayers, key: &str) -> Result<Option<Vec<u8>>, ConfigError> {
    let Some(path) = settings.optional(key, "a path", |it| Some(PathBuf::from(it)))? else { return Ok(None) };
    // The size is checked first, so that a large file is never in memory.
    let read = match fs::metadata(&path) {
        Ok(it) if it.len() > FILE_BYTES_MAX => Err(format!("the file is longer than {FILE_BYTES_MAX} bytes")),
        Ok(_) => fs::read(&path).map_err(|it| it.to_string()),
        Err(refused) => Err(refused.to_string()),
    };
    read.map(Some).map_err(|problem| settings.refuse(ConfigCode::Unreadable, key, &problem))
}

/// Returns true for an acceptable issuer URL. Issuers are compared byte for byte, so the text is not normalized. HTTPS
/// is required because an attacker on the network could otherwise sign in as any user.
fn is_issuer(text: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(text) else { return false };
    // OpenID Connect Discovery allows neither a query nor a fragment in an issuer.
    let plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    let private = match url.scheme() {
        "https" => true,
        "http" => matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")),
        _ => false,
    };
    plain && private && url.password().is_none()
}

fn read_word(text: &str) -> Option<String> {
    let fits = !text.is_empty() && text.len() <= 256 && text.bytes().all(|it| it.is_ascii_graphic());
    fits.then(|| text.to_owned())
}

fn read_button(text: &str) -> Option<String> {
    let fits = (1..=BUTTON_CHARS_MAX).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    fits.then(|| text.to_owned())
}

/// Splits at the last `=`, because values can contain `=` and names of groups and roles cannot.
fn read_group(text: &str) -> Option<(String, GroupName)> {
    let (value, group) = text.rsplit_once('=')?;
    let group = GroupName::try_from(group.trim()).ok()?;
    (!value.trim().is_empty()).then(|| (value.trim().to_owned(), group))
}

fn read_role(text: &str) -> Option<(String, PersonRole)> {
    let (value, role) = text.rsplit_once('=')?;
    let role = match role.trim() {
        "reviewer" => PersonRole::Reviewer,
        "auditor" => PersonRole::Auditor,
        "admin" => PersonRole::Admin,
        _ => return None,
    };
    (!value.trim().is_empty()).then(|| (value.trim().to_owned(), role))
}

fn read_admit(text: &str) -> Option<AdmissionRule> {
    match text {
        "mapped" => Some(AdmissionRule::Mapped),
        "anybody" => Some(AdmissionRule::Anybody),
        _ => None,
    }
}
