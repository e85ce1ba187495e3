//! Networks: from Kubernetes 1.30 on.

use std::net::IpAddr;

use super::{Row, global, ip, member, no_such_overload};
use crate::value::{Cidr, LibraryValue, LibraryValueKind};
use crate::{RunError, Value};
use kubemu_gostd::strconv::Quoted;

pub(super) const ROWS: &[Row] = &[
    global("cidr", "string_to_cidr", "string -> net.CIDR", cidr),
    member(
        "containsIP",
        "cidr_contains_ip_string",
        "net.CIDR, string -> bool",
        contains_ip,
    ),
    member(
        "containsIP",
        "cidr_contains_ip_ip",
        "net.CIDR, net.IP -> bool",
        contains_ip,
    ),
    member(
        "containsCIDR",
        "cidr_contains_cidr_string",
        "net.CIDR, string -> bool",
        contains_cidr,
    ),
    member(
        "containsCIDR",
        "cidr_contains_cidr",
        "net.CIDR, net.CIDR -> bool",
        contains_cidr,
    ),
    member("ip", "cidr_ip", "net.CIDR -> net.IP", address),
    member(
        "prefixLength",
        "cidr_prefix_length",
        "net.CIDR -> int",
        prefix_length,
    ),
    member("masked", "cidr_masked", "net.CIDR -> net.CIDR", masked),
    global("isCIDR", "is_cidr", "string -> bool", is_cidr),
    global(
        "string",
        "cidr_to_string",
        "net.CIDR -> string",
        ip::to_text,
    ),
];

impl Cidr {
    fn parse(text: &str) -> Result<Self, RunError> {
        let failed = |why: &str| {
            RunError::text(format!(
                "network address parse error during conversion from string: network \
                 address parse error during conversion from string: \
                 netip.ParsePrefix({}): {why}",
                Quoted(text)
            ))
        };
        let Some((address, bits)) = text.rsplit_once('/') else {
            return Err(failed("no '/'"));
        };
        let (address, zone) =
            kubemu_gostd::netip::parse(address).map_err(|why| failed(&why))?;
        if zone {
            return Err(failed("IPv6 zones cannot be present in a prefix"));
        }
        let is_number =
            !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || (bits.len() > 1 && bits.starts_with('0')) {
            return Err(failed(&format!("bad bits after slash: {}", Quoted(bits))));
        }
        let bits = bits
            .parse::<u8>()
            .ok()
            .filter(|bits| *bits <= width(address));
        let bits = bits.ok_or_else(|| failed("prefix length out of range"))?;
        if ip::is_mapped(address) {
            return Err(RunError::text(format!(
                "network address parse error during conversion from string: IPv4-mapped \
                 IPv6 address {} is not allowed",
                Quoted(text)
            )));
        }
        Ok(Self { address, bits })
    }

    /// Whether the network contains the address.
    fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && mask(self.address, self.bits) == mask(address, self.bits)
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address with all but its first bits cleared.
fn mask(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

fn value<'v>(cidr: Cidr) -> Value<'v> {
    Value::Library(LibraryValue(LibraryValueKind::Cidr(cidr)))
}

fn receiver(args: &[Value<'_>]) -> Result<Cidr, RunError> {
    match args.first() {
        Some(Value::Library(LibraryValue(LibraryValueKind::Cidr(cidr)))) => Ok(*cidr),
        _ => no_such_overload(),
    }
}

fn cidr<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(text)] => Cidr::parse(text).map(value),
        _ => no_such_overload(),
    }
}

fn is_cidr<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(text)] => Ok(Value::Bool(Cidr::parse(text).is_ok())),
        _ => no_such_overload(),
    }
}

fn contains_ip<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let cidr = receiver(args)?;
    let address = match args.get(1) {
        // The API server treats a parse error as an operand of another type.
        Some(Value::String(text)) => match ip::parse(text) {
            Ok(address) => address,
            Err(_) => return no_such_overload(),
        },
        Some(Value::Library(LibraryValue(LibraryValueKind::Ip(address)))) => *address,
        _ => return no_such_overload(),
    };
    Ok(Value::Bool(cidr.contains(address)))
}

fn contains_cidr<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let cidr = receiver(args)?;
    let other = match args.get(1) {
        Some(Value::String(text)) => Cidr::parse(text)?,
        Some(Value::Library(LibraryValue(LibraryValueKind::Cidr(other)))) => *other,
        _ => return no_such_overload(),
    };
    Ok(Value::Bool(
        cidr.bits <= other.bits && cidr.contains(other.address),
    ))
}

fn address<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    Ok(ip::value(receiver(args)?.address))
}

fn prefix_length<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    Ok(Value::Int(i64::from(receiver(args)?.bits)))
}

fn masked<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let Cidr { address, bits } = receiver(args)?;
    Ok(value(Cidr {
        address: mask(address, bits),
        bits,
    }))
}
