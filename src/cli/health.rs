//! `health`: checks the liveness of the configured gateway, so that a container image needs no curl.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::json;

use super::output::CommandOutput;
use super::{CliError, CommandExit};
use crate::config::Config;

/// The time limit. It is shorter than the usual limit of container health checks.
const PATIENCE: Duration = Duration::from_secs(3);

/// The number of bytes to read: only the status line.
const ANSWER_BYTES_MAX: usize = 12;

/// Exits with 0 if `/livez` returns 200, and with 1 otherwise. A gateway that does not respond is not alive.
pub fn run(config: &Config, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    let (address, problem) = (reachable(config.listen), problem(config));
    let text = problem.as_ref().map_or_else(|| "alive".to_owned(), |it| format!("not alive at {address}: {it}"));
    out.answer(text, || json!({"alive": problem.is_none(), "address": address, "problem": problem}))?;
    Ok(if problem.is_none() { CommandExit::Yes } else { CommandExit::No })
}

/// Returns the reason why the configured gateway is not alive.
pub(super) fn problem(config: &Config) -> Option<String> {
    match ask(reachable(config.listen)) {
        Ok(status) if status == "HTTP/1.1 200" => None,
        Ok(status) => Some(format!("it returned {status}")),
        Err(refused) => Some(refused.to_string()),
    }
}

/// Returns an address to connect to. The unspecified address becomes localhost.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(it) if it.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(it) if it.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        it => it,
    };
    SocketAddr::new(ip, listen.port())
}

fn ask(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = [0; ANSWER_BYTES_MAX];
    stream.read_exact(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;
    use crate::cli::output::OutputFormat;

    fn health(answer: &'static str) -> (CommandExit, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let config = Config { listen: listener.local_addr().unwrap(), ..Config::default() };
        let gateway = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 64];
            let length = stream.read(&mut request).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        let mut said = Vec::new();
        let exit = run(&config, &mut CommandOutput::new(OutputFormat::Text, &mut said)).unwrap();
        assert!(gateway.join().unwrap().starts_with("GET /livez "));
        (exit, String::from_utf8(said).unwrap())
    }

    #[test]
    fn a_gateway_that_answers_is_alive_and_any_other_is_not() {
        assert_eq!(health("HTTP/1.1 200 OK\r\n\r\n"), (CommandExit::Yes, "alive\n".to_owned()));
        assert_eq!(health("HTTP/1.1 503 Service Unavailable\r\n\r\n").0, CommandExit::No);
        assert_eq!(health("").0, CommandExit::No);
    }

    #[test]
    fn a_gateway_that_is_not_there_is_not_alive() {
        let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut said = Vec::new();
        let config = Config { listen, ..Config::default() };
        assert_eq!(run(&config, &mut CommandOutput::new(OutputFormat::Json, &mut said)).unwrap(), CommandExit::No);
        let said: serde_json::Value = serde_json::from_slice(&said).unwrap();
        assert_eq!(said["alive"], false);
    }

    #[test]
    fn unspecified_address_is_checked_on_localhost() {
        assert_eq!(reachable("0.0.0.0:80".parse().unwrap()).to_string(), "127.0.0.1:80");
        assert_eq!(reachable("[::]:80".parse().unwrap()).to_string(), "[::1]:80");
        assert_eq!(reachable("10.0.0.1:80".parse().unwrap()).to_string(), "10.0.0.1:80");
    }
}
