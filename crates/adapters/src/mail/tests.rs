use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use countersign_domain::primitives::secret::Secret;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;

const AUTHORITY: &[u8] = include_bytes!("../../../../tests/provider/tls/authority.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../../tests/provider/tls/certificate.pem");
const KEY: &[u8] = include_bytes!("../../../../tests/provider/tls/key.pem");

/// A short limit, for servers that never answer.
const SOON: Duration = Duration::from_millis(20);

fn settings(port: u16, tls: MailTls) -> MailConfig {
    let login = Some(("gate".to_owned(), Secret::new("sesame".to_owned())));
    let from = MailAddress::try_from("gate@example.org".to_owned()).unwrap();
    let (server, digests) = ("localhost".to_owned(), Duration::from_secs(3600));
    MailConfig { server, port, tls, login, from, authority: Some(AUTHORITY.to_vec()), digests }
}

fn mail() -> MailMessage {
    let to = MailAddress::try_from("anna@example.org".to_owned()).unwrap();
    MailMessage { to, id: "one".to_owned(), subject: "Something".to_owned(), text: "Hello.\n".to_owned() }
}

/// Starts a server that handles its first connection with the given function, and returns its port.
fn server(does: impl FnOnce(TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || does(listener.accept().unwrap().0));
    port
}

async fn refusal(port: u16, tls: MailTls) -> String {
    let error = Mailer::new(&settings(port, tls)).unwrap().send(&mail()).await.unwrap_err();
    assert!(matches!(error, MailError::Unusable(_)), "{error}");
    error.to_string()
}

/// Returns a server that sends the first line at once and one further line after each line that it receives.
fn says(lines: &[&str]) -> impl FnOnce(TcpStream) + Send + 'static {
    let lines: Vec<String> = lines.iter().map(|it| (*it).to_owned()).collect();
    move |mut stream| {
        let mut told = BufReader::new(stream.try_clone().unwrap()).lines();
        for line in lines {
            let _ = stream.write_all(line.as_bytes());
            if line.starts_with("354") {
                let _ = told.by_ref().find(|it| it.as_ref().is_ok_and(|it| it == "."));
            } else {
                let _ = told.next();
            }
        }
        // Waits until the client disconnects.
        let _ = told.count();
    }
}

#[tokio::test]
async fn silent_mail_server_times_out() {
    for lines in [&[][..], &["220 here\r\n"], &["220 he"], &["220 here\r\n", "250-half\r\n"]] {
        let mut mailer = Mailer::new(&settings(server(says(lines)), MailTls::None)).unwrap();
        mailer.waits.whole = SOON;
        assert!(matches!(mailer.send(&mail()).await, Err(MailError::Unusable(_))), "{lines:?}");
    }
}

#[tokio::test]
async fn endless_mail_response_is_refused() {
    for tls in [MailTls::None, MailTls::StartTls] {
        let port = server(|mut stream| while stream.write_all(&[b'2'; 4096]).is_ok() {});
        assert!(refusal(port, tls).await.contains("more data than SMTP needs"));
    }
}

#[tokio::test]
async fn accepted_mail_is_sent_once_without_a_quit_response() {
    let taken = [
        "220 here\r\n",
        "250-here\r\n250 AUTH PLAIN\r\n",
        "235 yes\r\n",
        "250 ok\r\n",
        "250 ok\r\n",
        "354 go\r\n",
        "250 taken\r\n",
    ];
    let mut mailer = Mailer::new(&settings(server(says(&taken)), MailTls::None)).unwrap();
    mailer.waits.farewell = SOON;
    mailer.send(&mail()).await.unwrap();
}

#[tokio::test]
async fn mail_errors_contain_only_codes() {
    let ready = ["220 here\r\n", "250-here\r\n250 AUTH PLAIN LOGIN\r\n"];
    let code = refusal(server(says(&[&ready[..], &["535 5.7.8 who says sesame?\r\n"]].concat())), MailTls::None).await;
    assert!(code.ends_with("the server answered 535 5.7.8"), "{code}");
    let quoted = "500 AUTH PLAIN AGdhdGUAc2VzYW1l\x1b[2J\r\n";
    let code = refusal(server(says(&[&ready[..], &[quoted]].concat())), MailTls::None).await;
    assert!(code.ends_with("the server answered 500"), "{code}");
    for rubbish in
        ["sesame\r\n", "\r\n", "999 sesame\r\n", "22\0 sesame\r\n", "250 sesame\n\n\n", "HTTP/1.1 200 sesame\r\n\r\n"]
    {
        let port = server(move |mut it| drop(it.write_all(rubbish.repeat(4).as_bytes())));
        let told = refusal(port, MailTls::StartTls).await;
        assert!(!told.contains("sesame") && !told.contains('\n'), "{rubbish:?}: {told}");
    }
    let torn = refusal(server(|mut it| drop(it.write_all(b"220 \xff\xfe sesame\r\n"))), MailTls::None).await;
    assert!(!torn.contains("sesame"), "{torn}");
}

/// An attacker in the middle who cannot break TLS must not be able to answer for the server.
#[tokio::test]
async fn bytes_sent_before_tls_do_not_count_as_answers_after_it() {
    crate::tls::ready();
    let chain = vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()];
    let tls = ServerConfig::builder().with_no_client_auth();
    let tls = Arc::new(tls.with_single_cert(chain, PrivateKeyDer::from_pem_slice(KEY).unwrap()).unwrap());
    let port = |behind: &'static str| {
        let tls = Arc::clone(&tls);
        server(move |mut stream| {
            stream.write_all(b"220 here\r\n").unwrap();
            let mut told = BufReader::new(stream.try_clone().unwrap());
            told.read_line(&mut String::new()).unwrap();
            stream.write_all(b"250-here\r\n250 STARTTLS\r\n").unwrap();
            told.read_line(&mut String::new()).unwrap();
            stream.write_all(format!("220 go ahead\r\n{behind}").as_bytes()).unwrap();
            let stream = StreamOwned::new(ServerConnection::new(tls).unwrap(), stream);
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            while stream.read_line(&mut line).is_ok_and(|it| it > 0) {
                let answer = match line.split_whitespace().next() {
                    Some("EHLO") => "250-here\r\n250 AUTH PLAIN\r\n",
                    Some("AUTH") => "235 yes\r\n",
                    Some("MAIL" | "RCPT" | "." | "QUIT") => "250 ok\r\n",
                    Some("DATA") => "354 go\r\n",
                    _ => "",
                };
                let _ = stream.get_mut().write_all(answer.as_bytes());
                line.clear();
            }
        })
    };
    Mailer::new(&settings(port(""), MailTls::StartTls)).unwrap().send(&mail()).await.unwrap();
    refusal(port("250-forged\r\n250 AUTH PLAIN\r\n"), MailTls::StartTls).await;
}
