//! The deny list by example, its edges, and ranges as users write them.
#![allow(clippy::unwrap_used)]

use super::*;

fn permits(policy: &AddressPolicy, text: &str) -> bool {
    policy.permits(text.parse().unwrap())
}

#[test]
fn every_denied_range_is_refused_at_both_ends() {
    let edges = [
        "0.0.0.0",
        "0.255.255.255",
        "10.0.0.0",
        "10.255.255.255",
        "100.64.0.0",
        "100.100.100.200",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "168.63.129.16",
        "169.254.0.0",
        "169.254.169.254",
        "172.16.0.0",
        "172.31.255.255",
        "192.0.0.0",
        "192.0.0.255",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.0",
        "192.168.255.255",
        "198.18.0.0",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.9",
        "224.0.0.0",
        "239.255.255.255",
        "240.0.0.0",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:1ff:ffff::1",
        "2001:db8::1",
        "2002:808:808::1",
        "3fff::1",
        "3fff:fff::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fdff::1",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "feff::1",
        "ff02::1",
    ];
    let policy = AddressPolicy::default();
    for edge in edges {
        assert!(!permits(&policy, edge), "{edge} must be refused");
    }
}

#[test]
fn neighbours_of_denied_ranges_are_permitted() {
    let outside = [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "168.63.129.17",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "8.8.8.8",
        "2001:200::1",
        "2606:4700::1111",
        "2003::1",
        "4000::1",
        "fb00::1",
    ];
    let policy = AddressPolicy::default();
    for address in outside {
        assert!(permits(&policy, address), "{address} must be permitted");
    }
}

#[test]
fn an_allowed_range_opens_only_itself() {
    let policy = AddressPolicy {
        allowed: vec!["10.1.0.0/16".parse().unwrap()],
        own: vec![],
    };
    assert!(permits(&policy, "10.1.2.3"));
    assert!(!permits(&policy, "10.2.0.1"));
    assert!(
        !permits(&policy, "::ffff:10.1.2.3"),
        "mapped stays refused until its own range is allowed"
    );
}

#[test]
fn an_allowed_translation_range_does_not_open_what_it_leads_to() {
    let policy = AddressPolicy {
        allowed: vec![
            "64:ff9b::/96".parse().unwrap(),
            "::ffff:0:0/96".parse().unwrap(),
            "2002::/16".parse().unwrap(),
            "2001::/32".parse().unwrap(),
        ],
        own: vec![],
    };
    assert!(permits(&policy, "64:ff9b::808:808"));
    assert!(permits(&policy, "::ffff:8.8.8.8"));
    for inner in [
        "64:ff9b::7f00:1",
        "::ffff:169.254.169.254",
        "2002:a00:1::1",
        "2001:0:0:0:0:0:80ff:fffe",
    ] {
        assert!(!permits(&policy, inner), "{inner} leads inside");
    }
}

#[test]
fn isatap_addresses_are_judged_by_what_they_carry() {
    let policy = AddressPolicy::default();
    assert!(!permits(&policy, "2606:4700::200:5efe:10.0.0.1"));
    assert!(!permits(&policy, "2606:4700::5efe:127.0.0.1"));
    assert!(permits(&policy, "2606:4700::5efe:8.8.8.8"));
}

#[test]
fn own_addresses_are_refused_unless_named() {
    let own: IpAddr = "8.8.8.8".parse().unwrap();
    let mut policy = AddressPolicy {
        allowed: vec![],
        own: vec![own],
    };
    assert!(!policy.permits(own));
    policy.allowed.push("8.8.8.8/32".parse().unwrap());
    assert!(policy.permits(own));
}

#[test]
fn dev_allows_loopback_and_nothing_else_inside() {
    let policy = AddressPolicy::allowing_loopback();
    assert!(permits(&policy, "127.0.0.1") && permits(&policy, "127.9.9.9") && permits(&policy, "::1"));
    assert!(!permits(&policy, "10.0.0.1") && !permits(&policy, "169.254.169.254") && !permits(&policy, "::"));
}

#[test]
fn ranges_are_read_strictly_and_written_back() {
    for good in ["0.0.0.0/0", "10.0.0.0/8", "1.2.3.4/32", "::/0", "fd00::/8", "::1/128"] {
        assert_eq!(good.parse::<AddressRange>().unwrap().to_string(), good);
    }
    for (bad, why) in [
        ("10.0.0.0", RangeError::Shape),
        ("10.0.0.0/", RangeError::Shape),
        ("10.0.0.0/+8", RangeError::Shape),
        ("10.0.0.0/8/8", RangeError::Shape),
        ("010.0.0.0/8", RangeError::Shape),
        ("10.0.0.0/33", RangeError::Prefix),
        ("10.0.0.0/999", RangeError::Prefix),
        ("::/129", RangeError::Prefix),
        ("10.0.0.1/8", RangeError::HostBits),
        ("fd00::1/8", RangeError::HostBits),
    ] {
        assert_eq!(bad.parse::<AddressRange>(), Err(why), "{bad}");
    }
}
