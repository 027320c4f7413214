//! Mail: handed to one server, over TLS unless that is this machine.
//!
//! The server may say nothing, or rubbish, or never stop: a mail then waits, and nothing else does. Of what it says
//! nothing is repeated but its codes, since some servers quote what they were told, the password with it.

mod bounded_stream;

#[cfg(test)]
mod tests;

use std::error::Error as _;
use std::time::Duration;

use lettre::address::Envelope;
use lettre::message::Mailbox;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, Message};

use crate::config::{MailConfig, MailTls};
use crate::domain::delivery::mail_contact::MailAddress;
use crate::domain::primitives::sanitize;
use bounded_stream::BoundedStream;

/// All of one mail, whatever the server does: one that says nothing more would otherwise hold up everybody's.
const WHOLE: Duration = Duration::from_secs(30);

/// Whoever has taken a mail has it, whether or not they say farewell.
const FAREWELL: Duration = Duration::from_secs(2);

/// Of what went wrong, so much is told.
const TOLD_CHARS_MAX: usize = 400;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MailMessage {
    pub to: MailAddress,
    /// The same whenever it is sent again, so that a mailbox can know it.
    pub id: String,
    /// What a list of mails shows.
    pub subject: String,
    pub text: String,
}

/// Why a mail was not taken.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// What is configured cannot be used.
    #[error("mail cannot be set up: {0}")]
    SetUp(String),
    #[error("a mail is refused: {0}")]
    Refused(String),
    /// The server was not there, not who it should be, or does not know us.
    #[error("the mail server cannot be used: {0}")]
    Unusable(String),
}

/// Hands mail to the server that is configured.
#[derive(Clone)]
pub struct Mailer {
    server: String,
    port: u16,
    way: SmtpSecurity,
    login: Option<Credentials>,
    from: Mailbox,
    waits: SmtpTimeouts,
}

/// How the server is spoken to.
#[derive(Clone)]
enum SmtpSecurity {
    Tls(TlsParameters),
    StartTls(TlsParameters),
    Clear,
}

/// For what the server is waited how long.
#[derive(Clone, Copy)]
struct SmtpTimeouts {
    whole: Duration,
    farewell: Duration,
}

impl Mailer {
    /// For this server. Nothing is asked of it yet.
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

    /// Hands one over; once it is taken, the server answers for it.
    pub async fn send(&self, mail: &MailMessage) -> Result<(), MailError> {
        let built = self.built(mail)?;
        let bytes = built.formatted();
        let link = tokio::time::timeout(self.waits.whole, self.hand_over(built.envelope(), &bytes));
        let long = |_| MailError::Unusable(format!("a mail took longer than {} s", self.waits.whole.as_secs()));
        let mut link = link.await.map_err(long)??;
        // It has the mail: what becomes of the farewell changes nothing.
        let _ = tokio::time::timeout(self.waits.farewell, link.quit()).await;
        Ok(())
    }

    fn built(&self, mail: &MailMessage) -> Result<Message, MailError> {
        let to: Address = mail.to.as_str().parse().map_err(|_| MailError::Refused("its address is none".to_owned()))?;
        let built = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .message_id(Some(format!("<{}@countersign>", mail.id)))
            .subject(&mail.subject)
            // Nobody's notice of absence is wanted in answer.
            .raw_header(HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned()))
            .header(ContentType::TEXT_PLAIN)
            .body(mail.text.clone());
        built.map_err(|it| MailError::Refused(it.to_string()))
    }

    async fn hand_over(&self, envelope: &Envelope, mail: &[u8]) -> Result<AsyncSmtpConnection, MailError> {
        let unusable = |error: SmtpError| MailError::Unusable(told(&error));
        let mut link = self.connect().await?;
        if let Some(login) = &self.login {
            link.auth(DEFAULT_MECHANISMS, login).await.map_err(unusable)?;
        }
        match link.send(envelope, mail).await {
            Ok(_) => Ok(link),
            // It is closing, or wants to know who we are: that is not about this mail.
            Err(error) => match error.status().map(u16::from) {
                Some(421 | 454 | 530 | 534 | 535 | 538) | None => Err(unusable(error)),
                Some(_) => Err(MailError::Refused(told(&error))),
            },
        }
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, MailError> {
        let unusable = |error: SmtpError| MailError::Unusable(told(&error));
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

fn told(error: &SmtpError) -> String {
    if let Some(code) = error.status() {
        let words = error.source().map(ToString::to_string).unwrap_or_default();
        let detail = words.split_whitespace().next().filter(|it| is_detail(it));
        return format!("it answers {}{}", u16::from(code), detail.map(|it| format!(" {it}")).unwrap_or_default());
    }
    if error.is_response() {
        return "its answer is none of SMTP's".to_owned();
    }
    sanitize::printed(&error.to_string()).replace('\n', " ").chars().take(TOLD_CHARS_MAX).collect()
}

/// Whether a word is a code as RFC 3463 writes it, as in 5.7.8.
fn is_detail(word: &str) -> bool {
    let number = |it: &str| (1..=3).contains(&it.len()) && it.bytes().all(|byte| byte.is_ascii_digit());
    word.split('.').count() == 3 && word.split('.').all(number)
}
