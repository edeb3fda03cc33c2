//! Which network addresses a target may be reached at.
//!
//! Owns: the deny list, address ranges and the check of one address. Must never: resolve names, open
//! sockets, or tell a user which address a name led to. Next: `url` (what may be written), `connector`
//! (who asks, twice).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A range of addresses, written `10.0.0.0/8` or `fd00::/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddressRange {
    base: IpAddr,
    prefix_bits: u8,
}

/// Why a text is no address range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// Not `address/bits`.
    #[error("an address range is written like 10.0.0.0/8 or fd00::/8")]
    Shape,
    /// More bits than the address has.
    #[error("the prefix of an IPv4 range is 0 to 32, of an IPv6 range 0 to 128")]
    Prefix,
    /// Bits are set behind the prefix, so the range is probably not what was meant.
    #[error("bits are set behind the prefix; write the first address of the range")]
    HostBits,
}

impl AddressRange {
    const fn v4(octets: [u8; 4], prefix_bits: u8) -> Self {
        let [a, b, c, d] = octets;
        Self {
            base: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            prefix_bits,
        }
    }

    const fn v6(first: [u16; 4], prefix_bits: u8) -> Self {
        let [a, b, c, d] = first;
        Self {
            base: IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)),
            prefix_bits,
        }
    }

    /// The two loopback ranges, which `dev` allows.
    pub const LOOPBACK: [Self; 2] = [
        Self::v4([127, 0, 0, 0], 8),
        Self {
            base: IpAddr::V6(Ipv6Addr::LOCALHOST),
            prefix_bits: 128,
        },
    ];

    /// Whether the address lies in the range. An IPv4 address is never in an IPv6 range, nor the reverse.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(ip)) => same_prefix(
                u128::from(base.to_bits()),
                u128::from(ip.to_bits()),
                32,
                self.prefix_bits,
            ),
            (IpAddr::V6(base), IpAddr::V6(ip)) => same_prefix(base.to_bits(), ip.to_bits(), 128, self.prefix_bits),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

fn same_prefix(a: u128, b: u128, width: u32, prefix_bits: u8) -> bool {
    let host_bits = width.saturating_sub(u32::from(prefix_bits));
    a.checked_shr(host_bits).unwrap_or(0) == b.checked_shr(host_bits).unwrap_or(0)
}

impl FromStr for AddressRange {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        let (base, bits) = text.split_once('/').ok_or(RangeError::Shape)?;
        let base: IpAddr = base.parse().map_err(|_| RangeError::Shape)?;
        if bits.is_empty() || bits.len() > 3 || !bits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(RangeError::Shape);
        }
        let prefix_bits: u8 = bits.parse().map_err(|_| RangeError::Prefix)?;
        let (width, value) = match base {
            IpAddr::V4(ip) => (32_u32, u128::from(ip.to_bits())),
            IpAddr::V6(ip) => (128, ip.to_bits()),
        };
        if u32::from(prefix_bits) > width {
            return Err(RangeError::Prefix);
        }
        let host_bits = width - u32::from(prefix_bits);
        let network = value
            .checked_shr(host_bits)
            .and_then(|v| v.checked_shl(host_bits))
            .unwrap_or(0);
        if network != value {
            return Err(RangeError::HostBits);
        }
        Ok(Self { base, prefix_bits })
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix_bits)
    }
}

/// Ranges no target is reached at unless an operator allows them: private, loopback, link-local,
/// metadata, documentation, benchmark, translation, multicast and reserved ones.
const DENIED: &[AddressRange] = &[
    AddressRange::v4([0, 0, 0, 0], 8),
    AddressRange::v4([10, 0, 0, 0], 8),
    AddressRange::v4([100, 64, 0, 0], 10),
    AddressRange::v4([127, 0, 0, 0], 8),
    AddressRange::v4([168, 63, 129, 16], 32),
    AddressRange::v4([169, 254, 0, 0], 16),
    AddressRange::v4([172, 16, 0, 0], 12),
    AddressRange::v4([192, 0, 0, 0], 24),
    AddressRange::v4([192, 0, 2, 0], 24),
    AddressRange::v4([192, 88, 99, 0], 24),
    AddressRange::v4([192, 168, 0, 0], 16),
    AddressRange::v4([198, 18, 0, 0], 15),
    AddressRange::v4([198, 51, 100, 0], 24),
    AddressRange::v4([203, 0, 113, 0], 24),
    AddressRange::v4([224, 0, 0, 0], 4),
    AddressRange::v4([240, 0, 0, 0], 4),
    AddressRange::v6([0, 0, 0, 0], 96),
    V4_MAPPED,
    AddressRange::v6([0x64, 0xff9b, 0, 0], 96),
    AddressRange::v6([0x64, 0xff9b, 1, 0], 48),
    AddressRange::v6([0x100, 0, 0, 0], 64),
    AddressRange::v6([0x2001, 0, 0, 0], 23),
    AddressRange::v6([0x2001, 0xdb8, 0, 0], 32),
    AddressRange::v6([0x2002, 0, 0, 0], 16),
    AddressRange::v6([0x3fff, 0, 0, 0], 20),
    AddressRange::v6([0x5f00, 0, 0, 0], 16),
    AddressRange::v6([0xfc00, 0, 0, 0], 7),
    AddressRange::v6([0xfe80, 0, 0, 0], 10),
    AddressRange::v6([0xfec0, 0, 0, 0], 10),
    AddressRange::v6([0xff00, 0, 0, 0], 8),
];

const V4_MAPPED: AddressRange = AddressRange {
    base: IpAddr::V6(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0)),
    prefix_bits: 96,
};

/// Which addresses a target may be reached at: everything outside the deny list, and what is allowed here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    /// Ranges an operator has allowed although they are on the deny list.
    pub allowed: Vec<AddressRange>,
    /// Addresses of this host, refused unless a range in `allowed` names them.
    pub own: Vec<IpAddr>,
}

impl AddressPolicy {
    /// The policy of `dev`: as the default, with loopback allowed.
    #[must_use]
    pub fn allowing_loopback() -> Self {
        Self {
            allowed: AddressRange::LOOPBACK.to_vec(),
            own: Vec::new(),
        }
    }

    /// Whether a target may be reached at this address. An IPv4 address hidden in an IPv6 one is judged too:
    /// each of the two must be permitted on its own.
    #[must_use]
    pub fn permits(&self, address: IpAddr) -> bool {
        self.permits_one(address) && embedded_v4(address).is_none_or(|v4| self.permits_one(IpAddr::V4(v4)))
    }

    /// Whether an operator has named this address in an allowed range.
    #[must_use]
    pub fn is_allowed_by_name(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|range| range.contains(address))
    }

    fn permits_one(&self, address: IpAddr) -> bool {
        if self.is_allowed_by_name(address) {
            return true;
        }
        !self.own.contains(&address) && !DENIED.iter().any(|range| range.contains(address))
    }
}

/// The IPv4 address that an IPv6 one carries: mapped, compatible, NAT64 (both prefixes), 6to4, Teredo, ISATAP.
fn embedded_v4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(v6) = address else { return None };
    let [a, b, c, d, e, f, g, h] = v6.segments();
    let pair = |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
    match (a, b) {
        (0, 0) if (c, d, e) == (0, 0, 0) && (f == 0xffff || (f == 0 && g != 0)) => Some(pair(g, h)),
        (0x64, 0xff9b) => Some(pair(g, h)),
        (0x2002, _) => Some(pair(b, c)),
        (0x2001, 0) => Some(pair(!g, !h)),
        _ if (e & !0x0200, f) == (0, 0x5efe) => Some(pair(g, h)),
        _ => None,
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
