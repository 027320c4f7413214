//! Who is at the other end of a connection, and where a request comes from.
//!
//! The gateway speaks plain HTTP, so it talks to this machine and to the proxies that are named, and to nobody
//! else. Only a named proxy's word is taken for where a request comes from: anybody can write a header.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use actix_web::HttpRequest;
use actix_web::http::header::HeaderMap;

use crate::config::Network;

/// Each proxy adds one. Nobody has more in a row; a longer list is an attacker's, and is not walked to its end.
const HOPS_MAX: usize = 32;

/// The header that proxies add to.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The proxies whose word is taken.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies {
    proxies: Vec<Network>,
}

impl TrustedProxies {
    /// These proxies, and this machine.
    pub const fn new(proxies: Vec<Network>) -> Self {
        Self { proxies }
    }

    fn is_proxy(&self, address: IpAddr) -> bool {
        self.proxies.iter().any(|it| it.contains(address))
    }

    /// Whether the gateway talks to that address at all.
    pub(super) fn admits(&self, address: IpAddr) -> bool {
        address.to_canonical().is_loopback() || self.is_proxy(address)
    }

    /// Where a request comes from: what is at the other end, or, if that is a named proxy, the rightmost address
    /// in its header that is none. What stands left of that is hearsay. Behind a word that is no address nothing
    /// is known, so the proxy that passed it on is the answer.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut nearest = peer.to_canonical();
        let lines: Vec<&[u8]> = headers.get_all(FORWARDED_FOR).map(|it| it.as_bytes()).collect();
        let hops = lines.iter().rev().flat_map(|line| line.rsplit(|byte| *byte == b','));
        for hop in hops.take(HOPS_MAX) {
            if !self.is_proxy(nearest) {
                break;
            }
            match read_address(hop) {
                Some(address) => nearest = address,
                None => break,
            }
        }
        nearest
    }

    /// Where a request comes from, as text for the log; the same for every spelling of an address.
    pub fn client_of(&self, request: &HttpRequest) -> String {
        self.told_of(request, |it| it)
    }

    /// Where a request comes from, for bounds: as much of the address as an asker does not choose at will.
    pub fn asker_of(&self, request: &HttpRequest) -> String {
        self.told_of(request, own_network)
    }

    /// Roughly where a request comes from, for a person to know it again: a network that many are in.
    pub fn network_of(&self, request: &HttpRequest) -> Option<String> {
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

    fn told_of(&self, request: &HttpRequest, told: impl Fn(IpAddr) -> IpAddr) -> String {
        let client = request.peer_addr().map(|peer| self.client(peer.ip(), request.headers()));
        client.map_or_else(|| "unknown".to_owned(), |it| told(it).to_string())
    }
}

/// The network that is one asker's own: an IPv4 address, or the 64 bits that come before the part of an IPv6
/// address that whoever is there gives himself, as often anew as he likes.
fn own_network(client: IpAddr) -> IpAddr {
    const OWN_BITS: u32 = 64;
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> OWN_BITS << OWN_BITS)),
    }
}

/// An address as proxies write it: `192.0.2.1`, `2001:db8::1`, `[2001:db8::1]`, each of them also with a port
/// where that is clear. An IPv4 address in IPv6 clothes is that IPv4 address.
fn read_address(hop: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(hop).ok()?.trim_matches([' ', '\t']);
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    let address = text.parse::<IpAddr>().ok().or_else(bracketed);
    address.or_else(|| text.parse::<SocketAddr>().ok().map(|it| it.ip())).map(|it| it.to_canonical())
}

#[cfg(test)]
mod tests;
