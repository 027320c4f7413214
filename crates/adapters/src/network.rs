//! IP addresses and networks, for proxies and webhook receivers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address or a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// First address, as IPv6. IPv4 addresses are mapped to IPv6, so that both spellings are equal.
    first: u128,
    /// The number of host bits at the end.
    free: u32,
}

impl Network {
    /// Reads `address` or `address/length`. A network must be written with its first address, because another address
    /// is probably a mistake. `/0` (for IPv4 too) is refused: it would trust every client.
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

    /// Returns true if the network contains the address.
    pub fn contains(&self, address: IpAddr) -> bool {
        number(address) & !self.ends() == self.first
    }

    fn ends(&self) -> u128 {
        // A shift by all 128 bits is not defined, and then every bit is a host bit.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_its_addresses_in_every_spelling() {
        let holds = |network: &str, address: &str| Network::parse(network).unwrap().contains(address.parse().unwrap());
        assert!(holds("10.0.0.7", "10.0.0.7"));
        assert!(holds("10.0.0.7", "::ffff:10.0.0.7"));
        assert!(!holds("10.0.0.7", "10.0.0.6"));
        assert!(holds("10.0.0.0/8", "10.255.0.1"));
        assert!(!holds("10.0.0.0/8", "11.0.0.0"));
        assert!(holds("fd00::/8", "fdff::1"));
        assert!(!holds("fd00::/8", "10.0.0.1"));
        for bad in [
            "",
            "10.0.0",
            "10.0.0.1/8",
            "10.0.0.0/33",
            "0.0.0.0/0",
            "::/0",
            "10.0.0.0/",
            "proxy.local",
            "::/129",
            "::ffff:0:0/96",
            "::/1",
        ] {
            assert_eq!(Network::parse(bad), None, "{bad}");
        }
    }
}
