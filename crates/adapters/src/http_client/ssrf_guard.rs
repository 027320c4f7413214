//! Decides which addresses requests can be sent to, and resolves names to allowed addresses only (SSRF protection).
//!
//! Each connection resolves its name once, here, and connects to exactly the addresses that were checked. A second
//! lookup would allow DNS rebinding. An open connection can be reused without another lookup.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::network::Network;

/// The limit of addresses per name. Each address that does not respond uses a part of the time limit.
const ADDRESSES_TRIED_MAX: usize = 8;

/// The result of a lookup.
pub(super) type DnsLookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Resolves names: the system's resolver, or that of a test.
pub(super) type DnsResolver = Arc<dyn Fn(String) -> DnsLookup + Send + Sync>;

pub(super) fn system() -> DnsResolver {
    Arc::new(|name| {
        Box::pin(async move {
            // The HTTP client sets the port when it connects.
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|it| it.ip()).collect())
        })
    })
}

/// The addresses that a client can connect to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum AddressScope {
    /// Public addresses and these networks.
    PublicAnd(Arc<[Network]>),
    Only(Arc<[Network]>),
}

impl AddressScope {
    /// Returns true if requests can be sent to the address.
    pub(super) fn holds(&self, address: IpAddr) -> bool {
        let named = |networks: &[Network]| networks.iter().any(|it| it.contains(address));
        match self {
            Self::PublicAnd(networks) => named(networks) || is_public(address),
            Self::Only(networks) => named(networks),
        }
    }

    /// Returns true if no address is allowed.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Only(networks) if networks.is_empty())
    }
}

/// The name resolves to an address that is not allowed.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the host name resolves to a private or reserved address")]
pub(super) struct ForbiddenAddress;

/// Resolves names and returns only allowed addresses.
pub(super) struct SsrfGuard {
    pub(super) look_up: DnsResolver,
    pub(super) reach: AddressScope,
}

impl Resolve for SsrfGuard {
    fn resolve(&self, name: Name) -> Resolving {
        let (found, reach) = ((self.look_up)(name.as_str().to_owned()), self.reach.clone());
        Box::pin(async move {
            let found = found.await?;
            if found.is_empty() {
                return Err(io::Error::from(io::ErrorKind::NotFound).into());
            }
            // One forbidden address refuses the name. A name with public and private addresses is an attack or a
            // mistake, and the result must not depend on the order of its addresses.
            if !found.iter().all(|it| reach.holds(*it)) {
                return Err(ForbiddenAddress.into());
            }
            let addresses = found.into_iter().take(ADDRESSES_TRIED_MAX).map(|it| SocketAddr::new(it, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// Returns true for public addresses. Every address that is not known to be public is refused.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    match address.octets() {
        // "This network", private, loopback.
        [0 | 10 | 127, ..] => false,
        // Shared address space of carriers (CGNAT), with the metadata service of some clouds.
        [100, 64..=127, ..] => false,
        // Link-local, with the metadata service of most clouds.
        [169, 254, ..] => false,
        [172, 16..=31, ..] | [192, 168, ..] => false,
        // IETF protocol assignments, with the metadata service of one cloud; documentation; the old 6to4 relay.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] => false,
        // Benchmarks.
        [198, 18..=19, ..] => false,
        // Documentation.
        [198, 51, 100, _] | [203, 0, 113, _] => false,
        // A public address that leads to the host in every virtual machine of one cloud.
        [168, 63, 129, 16] => false,
        // Multicast, reserved, broadcast.
        [224..=255, ..] => false,
        _ => true,
    }
}

/// Returns true for public IPv6 addresses. Only 2000::/3 is allocated for public use, so these need no rule of their own:
///
/// - unspecified and loopback
/// - mapped and compatible IPv4 (::ffff:0:0/96, ::/96) and NAT64 (64:ff9b::/96, 64:ff9b:1::/48)
/// - discard (100::/64), unique-local, link-local, site-local and multicast
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // IETF protocol assignments: Teredo, which wraps IPv4; benchmarks, ORCHID.
        [0x2001, 0x0000..=0x01ff, ..] => false,
        // Documentation.
        [0x2001, 0x0db8, ..] | [0x3fff, 0x0000..=0x0fff, ..] => false,
        // 6to4 wraps IPv4.
        [0x2002, ..] => false,
        [first, ..] => (0x2000..=0x3fff).contains(&first),
    }
}
