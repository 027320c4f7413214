//! Sends email to the configured server, over TLS unless the server is on localhost.
//!
//! The server can be silent, slow or malicious, so every exchange has limits. Error messages contain only the server's
//! codes, because some servers quote the commands that they received, with the password.

mod bounded_stream;

#[cfg(test)]
mod tests;

use std::error::Error as _;
use std::time::Duration;

use countersign_domain::delivery::mail_contact::MailAddress;
use countersign_domain::primitives::sanitize;
use countersign_domain::primitives::secret::Secret;
use lettre::address::Envelope;
use lettre::message::Mailbox;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, Message};

use bounded_stream::BoundedStream;

/// The limit for one email. Without it a silent server would delay all others.
const WHOLE: Duration = Duration::from_secs(30);

/// The limit for `QUIT`. The email is accepted before.
const FAREWELL: Duration = Duration::from_secs(2);

/// The limit on the length of an error message.
const TOLD_CHARS_MAX: usize = 400;

/// The mail server and how to connect to it.
#[derive(Clone, Debug)]
pub struct MailConfig {
    pub server: String,
    pub port: u16,
    pub tls: MailTls,
    pub login: Option<(String, Secret<String>)>,
    pub from: MailAddress,
    /// An additional trusted CA for the server's certificate, as PEM.
    pub authority: Option<Vec<u8>>,
    /// The interval between digests.
    pub digests: Duration,
}

/// Encryption of the connection to the mail server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MailTls {
    /// TLS from the first byte.
    Tls,
    /// STARTTLS before any other command. The connection fails if the server does not offer it.
    StartTls,
    /// Unencrypted, only for a server on localhost.
    None,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MailMessage {
    pub to: MailAddress,
    /// The message ID. It stays the same for each attempt, so that a mailbox can detect duplicates.
    pub id: String,
    /// The subject line.
    pub subject: String,
    pub text: String,
}

/// The reason that an email was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// The configuration cannot be used.
    #[error("the mail settings cannot be used: {0}")]
    SetUp(String),
    #[error("the email was refused: {0}")]
    Refused(String),
    /// The server is unreachable, has the wrong certificate, or refuses the credentials.
    #[error("the mail server cannot be used: {0}")]
    Unusable(String),
}

/// Sends email through the configured server.
#[derive(Clone)]
pub struct Mailer {
    server: String,
    port: u16,
    way: SmtpSecurity,
    login: Option<Credentials>,
    from: Mailbox,
    waits: SmtpTimeouts,
}

/// The encryption of the connection.
#[derive(Clone)]
enum SmtpSecurity {
    Tls(TlsParameters),
    StartTls(TlsParameters),
    Clear,
}

/// Time limits.
#[derive(Clone, Copy)]
struct SmtpTimeouts {
    whole: Duration,
    farewell: Duration,
}

impl Mailer {
    /// Creates a mailer. It does not connect yet.
    pub fn new(settings: &MailConfig) -> Result<Self, MailError> {
        crate::tls::ready();
        let way = match settings.tls {
            MailTls::Tls => SmtpSecurity::Tls(parameters(settings)?),
            MailTls::StartTls => SmtpSecurity::StartTls(parameters(settings)?),
            MailTls::None => SmtpSecurity::Clear,
        };
        let login = settings.login.as_ref();
        let from = settings.from.as_str().parse().map_err(|_| MailError::SetUp("`mail.from`".to_owned()))?;
        Ok(Self {
            server: settings.server.clone(),
            port: settings.port,
            way,
            login: login.map(|(user, password)| Credentials::new(user.clone(), password.expose().clone())),
            from: Mailbox::new(Some("Countersign".to_owned()), from),
            waits: SmtpTimeouts { whole: WHOLE, farewell: FAREWELL },
        })
    }

    /// Sends an email. After success the server is responsible for its delivery.
    pub async fn send(&self, mail: &MailMessage) -> Result<(), MailError> {
        let built = self.built(mail)?;
        let bytes = built.formatted();
        // One limit covers connect, TLS, authentication and content, because a slow server could use up several.
        let link = tokio::time::timeout(self.waits.whole, self.hand_over(built.envelope(), &bytes));
        let long = |_| MailError::Unusable(format!("an email took longer than {} s", self.waits.whole.as_secs()));
        let mut link = link.await.map_err(long)??;
        // The server has accepted the email, so an error of `QUIT` changes nothing.
        let _ = tokio::time::timeout(self.waits.farewell, link.quit()).await;
        Ok(())
    }

    /// Connects and signs in, and sends nothing.
    pub async fn check(&self) -> Result<(), MailError> {
        let long = |_| MailError::Unusable("the mail server did not answer in time".to_owned());
        let mut link = tokio::time::timeout(self.waits.whole, self.signed_in()).await.map_err(long)??;
        let _ = tokio::time::timeout(self.waits.farewell, link.quit()).await;
        Ok(())
    }

    fn built(&self, mail: &MailMessage) -> Result<Message, MailError> {
        let to: Address = mail
            .to
            .as_str()
            .parse()
            .map_err(|_| MailError::Refused("the recipient is not an email address".to_owned()))?;
        let built = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .message_id(Some(format!("<{}@countersign>", mail.id)))
            .subject(&mail.subject)
            // The header suppresses out-of-office replies.
            .raw_header(HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned()))
            // Plain text only: HTML could be used to imitate a page of the gateway.
            .header(ContentType::TEXT_PLAIN)
            .body(mail.text.clone());
        built.map_err(|it| MailError::Refused(it.to_string()))
    }

    async fn hand_over(&self, envelope: &Envelope, mail: &[u8]) -> Result<AsyncSmtpConnection, MailError> {
        let unusable = |error: SmtpError| MailError::Unusable(describe_smtp_error(&error));
        // The connection is new for each email, so that a broken one affects no other.
        let mut link = self.signed_in().await?;
        match link.send(envelope, mail).await {
            Ok(_) => Ok(link),
            // The server closes the connection or requires authentication. The error is about the server, not this
            // email.
            Err(error) => match error.status().map(u16::from) {
                Some(421 | 454 | 530 | 534 | 535 | 538) | None => Err(unusable(error)),
                Some(_) => Err(MailError::Refused(describe_smtp_error(&error))),
            },
        }
    }

    async fn signed_in(&self) -> Result<AsyncSmtpConnection, MailError> {
        let mut link = self.connect().await?;
        if let Some(login) = &self.login {
            let refused = |error: SmtpError| MailError::Unusable(describe_smtp_error(&error));
            link.auth(DEFAULT_MECHANISMS, login).await.map_err(refused)?;
        }
        Ok(link)
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, MailError> {
        let unusable = |error: SmtpError| MailError::Unusable(describe_smtp_error(&error));
        let (at, ours) = ((self.server.as_str(), self.port), ClientId::default());
        if let SmtpSecurity::Tls(parameters) = &self.way {
            let parameters = Some(parameters.clone());
            return AsyncSmtpConnection::connect_tokio1(at, None, &ours, parameters, None).await.map_err(unusable);
        }
        let link = BoundedStream::to(at).await.map_err(|it| MailError::Unusable(it.to_string()))?;
        let mut link = AsyncSmtpConnection::connect_with_transport(Box::new(link), &ours).await.map_err(unusable)?;
        if let SmtpSecurity::StartTls(parameters) = &self.way {
            link.starttls(parameters.clone(), &ours).await.map_err(unusable)?;
        }
        Ok(link)
    }
}

fn parameters(settings: &MailConfig) -> Result<TlsParameters, MailError> {
    let set_up = |error: SmtpError| MailError::SetUp(error.to_string());
    let mut builder = TlsParameters::builder(settings.server.clone());
    if let Some(pem) = &settings.authority {
        builder = builder.add_root_certificate(Certificate::from_pem(pem).map_err(set_up)?);
    }
    builder.build_rustls().map_err(set_up)
}

fn describe_smtp_error(error: &SmtpError) -> String {
    if let Some(code) = error.status() {
        let words = error.source().map(ToString::to_string).unwrap_or_default();
        let detail = words.split_whitespace().next().filter(|it| is_detail(it));
        return format!(
            "the server answered {}{}",
            u16::from(code),
            detail.map(|it| format!(" {it}")).unwrap_or_default()
        );
    }
    if error.is_response() {
        return "the server's answer is not SMTP".to_owned();
    }
    sanitize::printed(&error.to_string()).replace('\n', " ").chars().take(TOLD_CHARS_MAX).collect()
}

/// Returns true for an enhanced status code of RFC 3463, such as 5.7.8.
fn is_detail(word: &str) -> bool {
    let number = |it: &str| (1..=3).contains(&it.len()) && it.bytes().all(|byte| byte.is_ascii_digit());
    word.split('.').count() == 3 && word.split('.').all(number)
}
