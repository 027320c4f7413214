//! Settings of the mail server and of email notifications.

use std::net::IpAddr;
use std::time::Duration;

use countersign_adapters::mail::{MailConfig, MailTls};
use countersign_domain::delivery::mail_contact::MailAddress;

use super::oidc::{read_file, read_secret_of};
use super::settings::ConfigLayers;
use super::{ConfigCode, ConfigError};

pub(super) fn read(settings: &mut ConfigLayers) -> Result<Option<MailConfig>, ConfigError> {
    let server = settings.optional("mail.server", "the name or address of a host", read_host)?;
    let port = settings.number("mail.port", 1..=65_535)?;
    let tls = settings.text("mail.tls", "starttls, tls or none", read_tls)?;
    let user = settings.optional("mail.user", "a name", |it| Some(it.to_owned()))?;
    let password = read_secret_of(settings, "mail.password", "mail.password_file")?;
    let address = |it: &str| MailAddress::try_from(it.to_owned()).ok();
    let from = settings.optional("mail.from", "an email address, like countersign@example.org", address)?;
    let authority = read_file(settings, "mail.ca_file")?;
    let digests = Duration::from_secs(settings.number::<u64>("mail.digest_minutes", 1..=10_080)? * 60);
    // All keys are read before this, so that a mistake is reported even if no server is set.
    let Some(server) = server else { return Ok(None) };
    let bad = |key, problem| Err(settings.refuse(ConfigCode::BadValue, key, problem));
    let Some(from) = from else { return bad("mail.from", "it must be set, because `mail.server` is set") };
    if tls == MailTls::None && !is_here(&server) {
        let problem = "mail would cross the network unencrypted: use starttls or tls. none works only for a server on \
                           localhost (127.0.0.1, ::1, localhost)";
        return Err(settings.refuse(ConfigCode::PlainHttp, "mail.tls", problem));
    }
    let login = match (user, password) {
        (Some(user), Some(password)) => Some((user, password)),
        (None, None) => None,
        (Some(_), None) => {
            return bad("mail.password", "`mail.user` needs a password: set `mail.password` or `mail.password_file`");
        }
        (None, Some(_)) => return bad("mail.user", "it must be set, because a mail password is set"),
    };
    Ok(Some(MailConfig { server, port, tls, login, from, authority, digests }))
}

fn is_here(server: &str) -> bool {
    server == "localhost" || server.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
}

fn read_host(text: &str) -> Option<String> {
    // DNS allows at most 253 characters.
    let name = text.len() <= 253 && text.bytes().all(|it| it.is_ascii_alphanumeric() || b".-".contains(&it));
    (name || text.parse::<IpAddr>().is_ok()).then(|| text.to_owned())
}

fn read_tls(text: &str) -> Option<MailTls> {
    match text {
        "starttls" => Some(MailTls::StartTls),
        "tls" => Some(MailTls::Tls),
        "none" => Some(MailTls::None),
        _ => None,
    }
}
