//! Addresses and networks, of proxies and of receivers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a mistake is answered with.
pub(super) const EXPECTED: &str =
    "an IP address like 10.0.0.7, or a network in CIDR notation like 10.1.0.0/16 (not /0)";

/// One address, or a network of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// As IPv6: an IPv4 address is its mapped one, so that both spellings of it are the same.
    first: u128,
    /// How many bits at the end are free.
    free: u32,
}

impl Network {
    /// Reads `address` or `address/length`. A network must be written by its first address: anything else
    /// is more likely a slip than meant. One that holds every address, of IPv4 alone too, would trust everybody.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Some(bits), |it| it.parse::<u32>().ok())?;
        let free = bits.checked_sub(length)?;
        let network = Self { first: number(address), free };
        let everybody = network.contains(Ipv4Addr::UNSPECIFIED.into()) && network.contains(Ipv4Addr::BROADCAST.into());
        (length > 0 && !everybody && network.first & network.ends() == 0).then_some(network)
    }

    /// True if the address lies in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        number(address) & !self.ends() == self.first
    }

    fn ends(&self) -> u128 {
        1_u128.checked_shl(self.free).map_or(u128::MAX, |it| it - 1)
    }
}

fn number(address: IpAddr) -> u128 {
    let mapped = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    Ipv6Addr::to_bits(mapped)
}
