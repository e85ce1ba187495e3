//! IP addresses: from Kubernetes 1.30 on.

use std::net::IpAddr;

use super::{Row, Run, global, member, no_such_overload};
use crate::value::{LibraryValue, LibraryValueKind};
use crate::{RunError, Value};
use kubemu_gostd::strconv::Quoted;

pub(super) const ROWS: &[Row] = &[
    global("ip", "string_to_ip", "string -> net.IP", ip),
    member("family", "ip_family", "net.IP -> int", family),
    global(
        "ip.isCanonical",
        "ip_is_canonical",
        "string -> bool",
        is_canonical,
    ),
    member(
        "isUnspecified",
        "ip_is_unspecified",
        "net.IP -> bool",
        IS_UNSPECIFIED,
    ),
    member(
        "isLoopback",
        "ip_is_loopback",
        "net.IP -> bool",
        IS_LOOPBACK,
    ),
    member(
        "isLinkLocalMulticast",
        "ip_is_link_local_multicast",
        "net.IP -> bool",
        IS_LINK_LOCAL_MULTICAST,
    ),
    member(
        "isLinkLocalUnicast",
        "ip_is_link_local_unicast",
        "net.IP -> bool",
        IS_LINK_LOCAL_UNICAST,
    ),
    member(
        "isGlobalUnicast",
        "ip_is_global_unicast",
        "net.IP -> bool",
        IS_GLOBAL_UNICAST,
    ),
    global("isIP", "is_ip", "string -> bool", is_ip),
    global("string", "ip_to_string", "net.IP -> string", to_text),
];

const IS_UNSPECIFIED: Run = |args| test(args, IpAddr::is_unspecified);
const IS_LOOPBACK: Run = |args| test(args, IpAddr::is_loopback);
const IS_LINK_LOCAL_MULTICAST: Run = |args| test(args, is_link_local_multicast);
const IS_LINK_LOCAL_UNICAST: Run = |args| test(args, is_link_local_unicast);
const IS_GLOBAL_UNICAST: Run = |args| test(args, is_global_unicast);

/// An address without a zone that is not an IPv4-mapped IPv6 address.
pub(super) fn parse(text: &str) -> Result<IpAddr, RunError> {
    let (address, zone) = kubemu_gostd::netip::parse(text).map_err(|why| {
        RunError::text(format!(
            "IP Address {} parse error during conversion from string: {why}",
            Quoted(text)
        ))
    })?;
    if zone {
        let why = format!("IP address {} with zone value is not allowed", Quoted(text));
        return Err(RunError::text(why));
    }
    if is_mapped(address) {
        let why = format!("IPv4-mapped IPv6 address {} is not allowed", Quoted(text));
        return Err(RunError::text(why));
    }
    Ok(address)
}

pub(super) fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

pub(super) fn value<'v>(address: IpAddr) -> Value<'v> {
    Value::Library(LibraryValue(LibraryValueKind::Ip(address)))
}

fn ip<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(text)] => parse(text).map(value),
        _ => no_such_overload(),
    }
}

fn is_ip<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(text)] => Ok(Value::Bool(parse(text).is_ok())),
        _ => no_such_overload(),
    }
}

fn is_canonical<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(text)] => Ok(Value::Bool(parse(text)?.to_string() == **text)),
        _ => no_such_overload(),
    }
}

fn family<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::Library(LibraryValue(LibraryValueKind::Ip(address)))] => {
            Ok(Value::Int(if address.is_ipv4() { 4 } else { 6 }))
        }
        _ => no_such_overload(),
    }
}

/// `string(x)` of an address or a network.
pub(super) fn to_text<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::Library(value)] => Ok(Value::text(value.to_string())),
        _ => no_such_overload(),
    }
}

fn test<'v>(
    args: &[Value<'v>],
    test: fn(&IpAddr) -> bool,
) -> Result<Value<'v>, RunError> {
    match args {
        [Value::Library(LibraryValue(LibraryValueKind::Ip(address)))] => {
            Ok(Value::Bool(test(address)))
        }
        _ => no_such_overload(),
    }
}

fn is_link_local_multicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets().starts_with(&[224, 0, 0]),
        IpAddr::V6(address) => {
            let [first, second, ..] = address.octets();
            first == 0xff && second & 0x0f == 0x02
        }
    }
}

fn is_link_local_unicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// As Go defines it: neither special nor multicast; private addresses count.
fn is_global_unicast(address: &IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(broadcast
        || address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || is_link_local_unicast(address))
}
