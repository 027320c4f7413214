//! Which addresses something may be sent to, and a resolver that hands on no others.
//!
//! A name is looked up once for a connection, here, and what was looked at is what is connected to: between the two
//! nobody is asked again. A connection that was opened so stays good for as long as it is kept open.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::config::Network;

/// A name with more addresses than this has enough of them: each that does not answer takes its share of the time.
const ADDRESSES_TRIED_MAX: usize = 8;

/// The system's answer to a name.
pub(super) type DnsLookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// How names become addresses: the system's resolver, or what a test says.
pub(super) type DnsResolver = Arc<dyn Fn(String) -> DnsLookup + Send + Sync>;

pub(super) fn system() -> DnsResolver {
    Arc::new(|name| {
        Box::pin(async move {
            // The port is put in its place by whoever connects.
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|it| it.ip()).collect())
        })
    })
}

/// Which addresses a way out leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum AddressScope {
    /// The public ones, and these networks.
    PublicAnd(Arc<[Network]>),
    Only(Arc<[Network]>),
}

impl AddressScope {
    /// True if something may be sent there.
    pub(super) fn holds(&self, address: IpAddr) -> bool {
        let named = |networks: &[Network]| networks.iter().any(|it| it.contains(address));
        match self {
            Self::PublicAnd(networks) => named(networks) || is_public(address),
            Self::Only(networks) => named(networks),
        }
    }

    /// True if it leads to nobody at all.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Only(networks) if networks.is_empty())
    }
}

/// A name leads where nothing may be sent to.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the name leads to an address that nothing may be sent to")]
pub(super) struct ForbiddenAddress;

/// Looks names up, and hands on addresses within reach.
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
            // One answer that is not allowed refuses the name. A name that leads inside as well as outside is an attack
            // or a slip, and it should not depend on the order of its answers whether anybody notices.
            if !found.iter().all(|it| reach.holds(*it)) {
                return Err(ForbiddenAddress.into());
            }
            let addresses = found.into_iter().take(ADDRESSES_TRIED_MAX).map(|it| SocketAddr::new(it, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// True for the addresses of the Internet at large. What is not known to be one of them is none.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    match address.octets() {
        // This network and nobody; private; this machine.
        [0 | 10 | 127, ..] => false,
        // Carriers' own (CGNAT), with the metadata of some clouds.
        [100, 64..=127, ..] => false,
        // Link-local, with the metadata of most clouds.
        [169, 254, ..] => false,
        [172, 16..=31, ..] | [192, 168, ..] => false,
        // Protocols' own, with the metadata of one cloud; documentation; the old way into 6to4.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] => false,
        // Benchmarks.
        [198, 18..=19, ..] => false,
        // Documentation.
        [198, 51, 100, _] | [203, 0, 113, _] => false,
        // A public number, which in every machine of one cloud is the host beneath it.
        [168, 63, 129, 16] => false,
        // Multicast, reserved, broadcast.
        [224..=255, ..] => false,
        _ => true,
    }
}

/// All that is given out is 2000::/3. So what lies outside needs no list: unspecified and loopback, IPv4 that is mapped
/// or compatible (::/96, ::ffff:0:0/96), NAT64 (64:ff9b::/96, 64:ff9b:1::/48), discard (100::/64), unique-local,
/// link-local, site-local and multicast.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // Protocols' own: Teredo, which wraps IPv4; benchmarks, ORCHID.
        [0x2001, 0x0000..=0x01ff, ..] => false,
        // Documentation.
        [0x2001, 0x0db8, ..] | [0x3fff, 0x0000..=0x0fff, ..] => false,
        // 6to4 wraps IPv4.
        [0x2002, ..] => false,
        [first, ..] => (0x2000..=0x3fff).contains(&first),
    }
}
