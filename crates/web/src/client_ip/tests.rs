use actix_web::http::header::{HeaderName, HeaderValue};

use super::*;

fn peers(proxies: &[&str]) -> TrustedProxies {
    TrustedProxies::new(proxies.iter().map(|it| Network::parse(it).unwrap()).collect())
}

fn client(peers: &TrustedProxies, peer: &str, lines: &[&str]) -> String {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(HeaderName::from_static(FORWARDED_FOR), HeaderValue::from_str(line).unwrap());
    }
    peers.client(peer.parse().unwrap(), &headers).to_string()
}

#[test]
fn only_configured_proxies_are_trusted() {
    let named = peers(&["10.0.0.7"]);
    assert_eq!(client(&named, "10.0.0.7", &["203.0.113.5"]), "203.0.113.5");
    for peer in ["10.0.0.8", "127.0.0.1", "::1", "203.0.113.9"] {
        assert_eq!(client(&named, peer, &["203.0.113.5"]), peer);
    }
    assert_eq!(client(&peers(&[]), "127.0.0.1", &["203.0.113.5"]), "127.0.0.1");
    assert_eq!(client(&named, "10.0.0.7", &[]), "10.0.0.7");
    assert_eq!(client(&named, "::ffff:127.0.0.1", &["203.0.113.5"]), "127.0.0.1");
}

#[test]
fn rightmost_untrusted_address_is_the_client() {
    let named = peers(&["10.0.0.0/24", "fd00::/8"]);
    for (lines, expected) in [
        (&["1.1.1.1, 203.0.113.5"][..], "203.0.113.5"),
        (&["1.1.1.1, 203.0.113.5, 10.0.0.9"], "203.0.113.5"),
        (&["1.1.1.1, 203.0.113.5, fd00::1 , 10.0.0.9"], "203.0.113.5"),
        // Several headers are joined in their order.
        (&["1.1.1.1", "203.0.113.5", "10.0.0.9"], "203.0.113.5"),
        (&["203.0.113.5", "1.1.1.1"], "1.1.1.1"),
        // If every hop is trusted, the first one counts as the client.
        (&["10.0.0.3, 10.0.0.9"], "10.0.0.3"),
    ] {
        assert_eq!(client(&named, "10.0.0.7", lines), expected, "{lines:?}");
    }
}

#[test]
fn invalid_entry_makes_the_proxy_the_client() {
    let named = peers(&["10.0.0.0/24"]);
    for bad in ["unknown", "", "_hidden", "203.0.113", "203.0.113.5 1.1.1.1", "fe80::1%eth0", "0x7f.1", "1.2.3.4:x"] {
        assert_eq!(client(&named, "10.0.0.7", &[&format!("1.1.1.1, {bad}")]), "10.0.0.7", "{bad}");
        assert_eq!(client(&named, "10.0.0.7", &[&format!("1.1.1.1, {bad}, 10.0.0.9")]), "10.0.0.9", "{bad}");
    }
    let long = vec!["10.0.0.9"; HOPS_MAX + 1].join(",");
    assert_eq!(client(&named, "10.0.0.7", &[&format!("1.1.1.1,{long}")]), "10.0.0.9", "not walked to its end");
}

#[test]
fn every_spelling_of_an_address_is_the_same_address() {
    let named = peers(&["10.0.0.7", "::ffff:10.0.0.8"]);
    for peer in ["10.0.0.7", "::ffff:10.0.0.7", "::ffff:a00:7", "10.0.0.8"] {
        for spelt in
            ["203.0.113.5", "::ffff:203.0.113.5", "203.0.113.5:4711", "[::ffff:203.0.113.5]:1", "::ffff:cb00:7105"]
        {
            assert_eq!(client(&named, peer, &[spelt]), "203.0.113.5", "{peer} {spelt}");
        }
        for spelt in ["2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:443", "2001:0DB8:0::0001"] {
            assert_eq!(client(&named, peer, &[spelt]), "2001:db8::1", "{peer} {spelt}");
        }
        // A mapped IPv4 address of a proxy is that proxy.
        assert_eq!(client(&named, peer, &["203.0.113.5, ::ffff:10.0.0.7"]), "203.0.113.5");
    }
}

#[test]
fn only_localhost_and_configured_proxies_may_connect() {
    let named = peers(&["10.0.0.7", "fd00::/8"]);
    for peer in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "10.0.0.7", "::ffff:10.0.0.7", "fd12::1"] {
        assert!(named.admits(peer.parse().unwrap()), "{peer}");
    }
    for peer in ["10.0.0.8", "::ffff:10.0.0.8", "192.168.1.2", "203.0.113.5", "2001:db8::1", "0.0.0.0", "::"] {
        assert!(!named.admits(peer.parse().unwrap()), "{peer}");
    }
}

#[test]
fn ipv6_client_is_its_64_bit_network() {
    let own = |text: &str| own_network(text.parse().unwrap()).to_string();
    for same in ["2001:db8:1:2::", "2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"] {
        assert_eq!(own(same), "2001:db8:1:2::", "{same}");
    }
    assert_eq!(own("2001:db8:1:3::1"), "2001:db8:1:3::");
    assert_eq!(own("203.0.113.5"), "203.0.113.5");
    assert_ne!(own("203.0.113.5"), own("203.0.113.6"));
}
