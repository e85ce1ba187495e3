//! Addresses of this host or of its link, and of the services that tell a machine its credentials.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses at which clouds answer their machines, outside the ranges of links: Azure's agent and
/// Alibaba Cloud's metadata.
const METADATA_V4: [Ipv4Addr; 2] = [
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(100, 100, 100, 200),
];
/// Likewise: metadata, DNS and time of AWS (`fd00:ec2::/32`), and metadata of Google Cloud and of
/// Scaleway.
const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254),
    Ipv6Addr::new(0xfd00, 0x0042, 0, 0, 0, 0, 0, 0x0042),
];

/// Whether `address` is one of this host (loopback, unspecified) or of its link, or one at which a
/// cloud answers its own machines. A service there assumes that no other host can reach it. An
/// address of IPv6 that stands for one of IPv4 is judged as that one.
pub fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_local_v4(address),
        IpAddr::V6(address) => {
            address.is_loopback()
                || address.is_unspecified()
                || address.is_unicast_link_local()
                || matches!(address.segments(), [0xfd00, 0x0ec2, ..])
                || METADATA_V6.contains(&address)
                || embedded(address).is_some_and(is_local_v4)
        }
    }
}

fn is_local_v4(address: Ipv4Addr) -> bool {
    // All of 0.0.0.0/8 means this host.
    address.is_loopback()
        || address.octets()[0] == 0
        || address.is_link_local()
        || METADATA_V4.contains(&address)
}

/// The address of IPv4 to which a host or its network translates this one: mapped and compatible
/// addresses, NAT64 with its own prefixes (RFC 6052, RFC 8215), and 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join =
        |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low]
        | [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

/// Whether the host of a URL is such an address, or a name that always means this host (RFC
/// 6761). The addresses of other names are checked when they are dialled.
pub fn is_local_host(host: &str) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    if let Some(bare) = bare {
        return bare.parse::<Ipv6Addr>().is_ok_and(|it| is_local(it.into()));
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return is_local(address);
    }
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_host_its_link_and_of_metadata_are_local_in_every_form() {
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "168.63.129.16",
            "100.100.100.200",
            "::",
            "::1",
            "fe80::1",
            "fd00:ec2::254",
            "fd00:ec2::253",
            "fd20:ce::254",
            "fd00:42::42",
            "::ffff:169.254.169.254",
            "::ffff:168.63.129.16",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b:1::a9fe:a9fe",
            "64:ff9b:1:ffff::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "2002:7f00:1::",
        ] {
            assert!(is_local(address.parse().unwrap()), "{address}");
        }
        for address in [
            "10.0.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "168.63.129.17",
            "203.0.113.7",
            "fd00::1",
            "fd12:3456::1",
            "2001:db8::1",
            "64:ff9b::a00:1",
            "64:ff9b:2::a9fe:a9fe",
            "2002:a00:1::1",
        ] {
            assert!(!is_local(address.parse().unwrap()), "{address}");
        }
        for (host, expected) in [
            ("[64:ff9b::a9fe:a9fe]", true),
            ("168.63.129.16", true),
            ("api.localhost.", true),
            ("[2001:db8::1]", false),
            ("example.com", false),
        ] {
            assert_eq!(is_local_host(host), expected, "{host}");
        }
    }
}
