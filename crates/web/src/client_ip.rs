//! Determines the client's IP address and checks the peer of a connection.
//!
//! The gateway serves plain HTTP, so it accepts connections only from localhost and the configured proxies. It trusts
//! `X-Forwarded-For` only from a configured proxy, because any client can set the header.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use actix_web::HttpRequest;
use actix_web::http::header::HeaderMap;
use countersign_adapters::network::Network;

/// The limit on proxies in a row. Longer lists come from attackers and are not read to the end.
const HOPS_MAX: usize = 32;

/// The header to which each proxy appends an address.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The proxies that are trusted to report the client's address.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies {
    proxies: Vec<Network>,
}

impl TrustedProxies {
    /// Trusts these proxies. Connections from localhost are also accepted.
    pub const fn new(proxies: Vec<Network>) -> Self {
        Self { proxies }
    }

    fn is_proxy(&self, address: IpAddr) -> bool {
        self.proxies.iter().any(|it| it.contains(address))
    }

    /// Returns true if the gateway accepts connections from the address.
    pub(super) fn admits(&self, address: IpAddr) -> bool {
        // Localhost may connect, but is trusted for `X-Forwarded-For` only if it is configured as a proxy.
        address.to_canonical().is_loopback() || self.is_proxy(address)
    }

    /// Returns the client's address: the peer, or, behind a trusted proxy, the rightmost address in the header that is
    /// not a trusted proxy. Entries to the left of it can be forged. If an entry is invalid, the proxy that sent it
    /// counts as the client.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        // A dual-stack socket reports IPv4 peers as mapped IPv6 addresses, which would not match the configured IPv4
        // networks.
        let mut nearest = peer.to_canonical();
        let lines: Vec<&[u8]> = headers.get_all(FORWARDED_FOR).map(|it| it.as_bytes()).collect();
        // Each proxy appends to the right, so the list is read from the end.
        let hops = lines.iter().rev().flat_map(|line| line.rsplit(|byte| *byte == b','));
        for hop in hops.take(HOPS_MAX) {
            if !self.is_proxy(nearest) {
                break;
            }
            match read_address(hop) {
                Some(address) => nearest = address,
                // An unreadable hop ends the walk, because everything to its left is unverified too.
                None => break,
            }
        }
        nearest
    }

    /// Returns the client's address for the server log, normalized.
    pub fn client_of(&self, request: &HttpRequest) -> String {
        self.describe_client(request, |it| it)
    }

    /// Returns the client's address for rate limits, without the bits that a client can choose.
    pub fn asker_of(&self, request: &HttpRequest) -> String {
        self.describe_client(request, own_network)
    }

    /// Returns a coarse network, from which a person can recognize a session without a precise address.
    pub fn network_of(&self, request: &HttpRequest) -> Option<String> {
        // A precise address would reveal where a person was, and changes too often to recognize a session.
        let peer = request.peer_addr()?;
        Some(match self.client(peer.ip(), request.headers()) {
            IpAddr::V4(address) => {
                let [a, b, c, _] = address.octets();
                format!("{a}.{b}.{c}.0/24")
            }
            IpAddr::V6(address) => {
                const OTHER_BITS: u32 = 80;
                format!("{}/48", Ipv6Addr::from_bits(address.to_bits() >> OTHER_BITS << OTHER_BITS))
            }
        })
    }

    fn describe_client(&self, request: &HttpRequest, told: impl Fn(IpAddr) -> IpAddr) -> String {
        let client = request.peer_addr().map(|peer| self.client(peer.ip(), request.headers()));
        client.map_or_else(|| "unknown".to_owned(), |it| told(it).to_string())
    }
}

/// Returns the network of one client: an IPv4 address, or the first 64 bits of an IPv6 address. A client can choose the
/// other 64 bits freely, so they must not give it new rate limits.
fn own_network(client: IpAddr) -> IpAddr {
    const OWN_BITS: u32 = 64;
    match client {
        // One IPv6 client usually has a whole /64, so single IPv6 addresses would not limit it.
        IpAddr::V4(_) => client,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> OWN_BITS << OWN_BITS)),
    }
}

/// Parses an address as proxies write it: `192.0.2.1`, `2001:db8::1` or `[2001:db8::1]`, each with an optional port
/// where that is unambiguous. A mapped IPv4 address becomes IPv4.
fn read_address(hop: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(hop).ok()?.trim_matches([' ', '\t']);
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    let address = text.parse::<IpAddr>().ok().or_else(bracketed);
    address.or_else(|| text.parse::<SocketAddr>().ok().map(|it| it.ip())).map(|it| it.to_canonical())
}

#[cfg(test)]
mod tests;
