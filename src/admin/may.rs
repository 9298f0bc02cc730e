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

/// Whether a browser shows the token: as the password of its own prompt. Opens the page alone, which changes
/// nothing.
pub(super) fn signs_in(head: &request::Parts, token: &Secret) -> bool {
    let value = head.headers.get(AUTHORIZATION).map(http::HeaderValue::as_bytes);
    let encoded = value.and_then(|value| {
        let (scheme, rest) = value.split_at_checked(6)?;
        scheme.eq_ignore_ascii_case(b"basic ").then_some(rest)
    });
    let pair = encoded.and_then(decoded);
    let password = pair.as_deref().and_then(|pair| pair.splitn(2, |byte| *byte == b':').nth(1));
    password.is_some_and(|password| is_same(password, token.reveal().as_bytes()))
}

/// Base64 with its padding, as browsers write it. None where it is something else, or too long for a token.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    const LONGEST: usize = 8 << 10;
    let text = text.trim_ascii();
    let digits = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    if text.len() > LONGEST || !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut bits, mut count) = (0u32, 0);
    for digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xff_ffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
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
    fn a_browser_shows_the_token_as_its_password() {
        let check = |value: &str, expected: bool| {
            let request = http::Request::get("/page").header("authorization", value).body(());
            let (head, ()) = request.expect("a request").into_parts();
            let token = (parse::TOKEN.parse)(TOKEN).expect("a token");
            assert_eq!(signs_in(&head, &token), expected, "{value}");
        };
        // me:a-token-of-some-length, :a-token-of-some-length, me:a-token-of-some-lengtH, me
        check("Basic bWU6YS10b2tlbi1vZi1zb21lLWxlbmd0aA==", true);
        check("basic OmEtdG9rZW4tb2Ytc29tZS1sZW5ndGg=", true);
        check("Basic bWU6YS10b2tlbi1vZi1zb21lLWxlbmd0SA==", false);
        check("Basic bWU=", false);
        check("Basic =", false);
        check("Basic b!U=", false);
        check("Bearer bWU6YS10b2tlbi1vZi1zb21lLWxlbmd0aA==", false);
    }

    #[test]
    fn a_name_that_somebody_led_to_loopback_is_not_answered() {
        check("127.0.0.1", &[("host", "evil.example")], false, false);
        check("127.0.0.1", &[], false, false);
    }
}
