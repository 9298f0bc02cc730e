//! Who may see handoffs: whoever shows the token; where none is set, whoever
//! asks on loopback.

use std::net::{IpAddr, SocketAddr};

use http::header::{AUTHORIZATION, HOST};
use http::request;

use crate::config::Secret;

/// Whether the asker may see and remove handoffs.
pub(super) fn see(head: &request::Parts, peer: SocketAddr, token: Option<&Secret>) -> bool {
    match token {
        Some(token) => shows(head, token.reveal()),
        None => peer.ip().to_canonical().is_loopback() && names_an_address(head),
    }
}

fn shows(head: &request::Parts, token: &str) -> bool {
    let value = head.headers.get(AUTHORIZATION).map(http::HeaderValue::as_bytes);
    let shown = value.and_then(|value| {
        let (scheme, rest) = value.split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"bearer ").then_some(rest)
    });
    shown.is_some_and(|shown| is_same(shown, token.as_bytes()))
}

/// Compares in a time that does not tell where the first difference is.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b));
    a.len() == b.len() && std::hint::black_box(differences) == 0
}

/// A page in a browser beside Seam can make a name of its own lead to loopback, but not change the name
/// that it asks for.
fn names_an_address(head: &request::Parts) -> bool {
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| head.uri.authority().map(http::uri::Authority::as_str)).unwrap_or_default();
    let name = host.parse().map(|authority: http::uri::Authority| {
        authority.host().trim_start_matches('[').trim_end_matches(']').to_owned()
    });
    name.is_ok_and(|name| name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    const TOKEN: &str = "a-token-of-some-length";

    fn check(peer: &str, headers: &[(&str, &str)], token: bool, expected: bool) {
        let mut request = http::Request::get("/handoffs");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).expect("a request").into_parts();
        let token = token.then(|| (parse::TOKEN.parse)(TOKEN).expect("a token"));
        let peer = SocketAddr::new(peer.parse().expect("an address"), 1);
        assert_eq!(see(&head, peer, token.as_ref()), expected, "{peer} {headers:?}");
    }

    #[test]
    fn loopback_sees_without_a_token_unless_one_is_set() {
        check("127.0.0.1", &[("host", "127.0.0.1:8485")], false, true);
        check("::1", &[("host", "[::1]:8485")], false, true);
        check("::ffff:127.0.0.1", &[("host", "localhost:8485")], false, true);
        check("10.0.0.7", &[("host", "127.0.0.1:8485")], false, false);
        check("127.0.0.1", &[("host", "127.0.0.1:8485")], true, false);
    }

    #[test]
    fn the_token_opens_it_from_anywhere() {
        let bearer = format!("Bearer {TOKEN}");
        check("10.0.0.7", &[("authorization", &bearer)], true, true);
        check("10.0.0.7", &[("authorization", &bearer)], false, false);
        check("10.0.0.7", &[("authorization", &bearer[..bearer.len() - 1])], true, false);
        check("10.0.0.7", &[("authorization", TOKEN)], true, false);
        check("10.0.0.7", &[("authorization", "Bear")], true, false);
    }

    #[test]
    fn a_name_that_somebody_led_to_loopback_is_not_answered() {
        check("127.0.0.1", &[("host", "evil.example")], false, false);
        check("127.0.0.1", &[], false, false);
    }
}
