//! Which URLs pass, and the spellings by which others were tricked into reaching inside.
#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

#[test]
fn plain_urls_are_read_into_their_parts() {
    let url = TargetUrl::parse("HTTPS://Hooks.Example.com:8443/a/b?c=d%20e").unwrap();
    assert_eq!(url.scheme, Scheme::Https);
    assert_eq!(url.host, Host::Name("hooks.example.com".into()));
    assert_eq!(url.port, 8443);
    assert_eq!(url.path_and_query, "/a/b?c=d%20e");
    assert_eq!(url.authority(), "hooks.example.com:8443");
}

#[test]
fn the_schemes_own_port_is_left_out_of_the_host_header() {
    assert_eq!(TargetUrl::parse("http://a.b").unwrap().authority(), "a.b");
    assert_eq!(TargetUrl::parse("https://a.b:443?x").unwrap().authority(), "a.b");
    assert_eq!(TargetUrl::parse("http://a.b:443/").unwrap().authority(), "a.b:443");
    assert_eq!(
        TargetUrl::parse("http://[::1]:8080/").unwrap().authority(),
        "[::1]:8080"
    );
    assert_eq!(TargetUrl::parse("http://a.b?x").unwrap().path_and_query, "/?x");
}

#[test]
fn odd_spellings_of_addresses_are_refused_before_any_resolver_sees_them() {
    for (text, why) in [
        ("http://2130706433/", UrlError::Host),
        ("http://0x7f000001/", UrlError::Host),
        ("http://0x7f.0.0.1/", UrlError::Host),
        ("http://0177.0.0.1/", UrlError::Host),
        ("http://017700000001/", UrlError::Host),
        ("http://127.1/", UrlError::Host),
        ("http://127.0.1/", UrlError::Host),
        ("http://127.0.0.1./", UrlError::Host),
        ("http://0/", UrlError::Host),
        ("http://1.2.3.0x7f/", UrlError::Host),
        ("http://\u{2460}\u{2461}\u{2466}.0.0.1/", UrlError::Characters),
        ("http://127\u{3002}0\u{3002}0\u{3002}1/", UrlError::Characters),
        ("http://%31%32%37.0.0.1/", UrlError::Host),
        ("http://example.com@127.0.0.1/", UrlError::UserInfo),
        ("http://user:word@example.com/", UrlError::UserInfo),
        ("http://[fe80::1%25eth0]/", UrlError::Host),
        ("http://[127.0.0.1]/", UrlError::Host),
        ("http://[::1/", UrlError::Host),
        ("http://[::1]x/", UrlError::Host),
        ("http://::1/", UrlError::Port),
        ("http://b\u{fc}cher.example/", UrlError::Characters),
        ("http://a.b\\@c.d/", UrlError::Characters),
        ("http://localhost./", UrlError::Host),
        ("http://a..b/", UrlError::Host),
        ("http:///path", UrlError::Host),
        ("http://-a.b/", UrlError::Host),
    ] {
        assert_eq!(TargetUrl::parse(text), Err(why), "{text}");
    }
}

#[test]
fn other_schemes_ports_and_bytes_are_refused_by_name() {
    for (text, why) in [
        ("ftp://a.b/", UrlError::Scheme),
        ("file:///etc/passwd", UrlError::Scheme),
        ("gopher://a.b/", UrlError::Scheme),
        ("a.b/path", UrlError::Scheme),
        ("", UrlError::Scheme),
        ("http://a.b:0/", UrlError::Port),
        ("http://a.b:65536/", UrlError::Port),
        ("http://a.b:/", UrlError::Port),
        ("http://a.b:+80/", UrlError::Port),
        ("http://a.b:25/", UrlError::PortNotAllowed),
        ("http://a.b:22/", UrlError::PortNotAllowed),
        ("http://a.b:1023/", UrlError::PortNotAllowed),
        ("http://a.b/#top", UrlError::Fragment),
        ("http://a.b/\r\nHost: c", UrlError::Characters),
        ("http://a.b/\0", UrlError::Characters),
        ("http://a.b/a b", UrlError::Characters),
    ] {
        assert_eq!(TargetUrl::parse(text), Err(why), "{text}");
    }
    let long = format!("http://a.b/{}", "x".repeat(URL_BYTES_MAX));
    assert_eq!(TargetUrl::parse(&long), Err(UrlError::TooLong));
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic_and_what_passes_reads_the_same_again(text in "(?s).{0,80}", host in "[0-9a-zA-Z.:@%\\[\\]-]{0,30}") {
        for candidate in [text.clone(), format!("http://{text}"), format!("https://{host}/x")] {
            if let Ok(url) = TargetUrl::parse(&candidate) {
                let scheme = match url.scheme { Scheme::Http => "http", Scheme::Https => "https" };
                let again = format!("{scheme}://{}{}", url.authority(), url.path_and_query);
                prop_assert_eq!(TargetUrl::parse(&again), Ok(url));
            }
        }
    }
}
