//! Heads on their way through: what belongs to one connection stays behind,
//! the rest goes on in its order.

use http::header::{
    self, ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Version};

/// Headers of one connection, beside what `Connection` names.
const HOP_BY_HOP: [HeaderName; 4] =
    [CONNECTION, TRANSFER_ENCODING, UPGRADE, HeaderName::from_static("keep-alive")];

/// The head of a request as upstream gets it, `host` first; the framing is upstream's to add.
pub(crate) fn request_headers(mut client: HeaderMap, version: Version, host: &HeaderValue) -> HeaderMap {
    let named = Named::of(&client);
    let is_chunked = client.contains_key(TRANSFER_ENCODING);
    let stays = |name: &HeaderName| {
        named.is_hop_by_hop(name)
            || *name == TE
            // hyper has answered it; upstream gets the body without asking for it.
            || *name == EXPECT
            // Two ways to tell a length are a way to smuggle a request: the coding wins.
            || (*name == CONTENT_LENGTH && is_chunked)
    };
    if version == Version::HTTP_11 && client.keys().next() == Some(&HOST) && !client.keys().any(stays) {
        client.insert(HOST, host.clone());
        return client;
    }
    let mut onward = HeaderMap::with_capacity(client.len() + 2);
    onward.insert(HOST, host.clone());
    for (name, value) in client.iter().filter(|(name, _)| **name != HOST && !stays(name)) {
        onward.append(name.clone(), value.clone());
    }
    if wants_trailers(&client) {
        onward.append(TE, HeaderValue::from_static("trailers"));
    }
    if version == Version::HTTP_2 {
        join_cookies(&mut onward);
    }
    onward
}

/// Asks for a reply that can be read.
pub(crate) fn ask_for_identity(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// Asks upstream to switch to the protocol that the client named.
pub(crate) fn ask_for_upgrade(headers: &mut HeaderMap, protocol: &HeaderValue) {
    headers.append(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.append(UPGRADE, protocol.clone());
}

/// The head of a reply as the client gets it.
pub(crate) fn reply_headers(upstream: &mut HeaderMap) {
    let named = Named::of(upstream);
    let is_chunked = upstream.contains_key(TRANSFER_ENCODING);
    let stays = |name: &HeaderName| {
        named.is_hop_by_hop(name) || *name == TE || (*name == CONTENT_LENGTH && is_chunked)
    };
    if !upstream.keys().any(stays) {
        return;
    }
    let mut onward = HeaderMap::with_capacity(upstream.len());
    for (name, value) in upstream.iter().filter(|(name, _)| !stays(name)) {
        onward.append(name.clone(), value.clone());
    }
    *upstream = onward;
}

/// The head of a reply whose body may leave with another length, or as another text, than it came.
pub(crate) fn without_length(headers: &mut HeaderMap) {
    for name in [
        CONTENT_LENGTH,
        header::ETAG,
        HeaderName::from_static("content-md5"),
        HeaderName::from_static("digest"),
    ] {
        headers.remove(name);
    }
}

/// The protocol that a request asks to switch to, if it does.
pub(crate) fn upgrade(headers: &HeaderMap) -> Option<&HeaderValue> {
    let asks = tokens(headers, &CONNECTION).any(|token| token.eq_ignore_ascii_case("upgrade"));
    headers.get(UPGRADE).filter(|_| asks)
}

/// What a `Connection` header names beside the well-known.
struct Named(Vec<HeaderName>);

impl Named {
    fn of(headers: &HeaderMap) -> Named {
        let unknown =
            |token: &&str| !["keep-alive", "close", "upgrade"].iter().any(|t| token.eq_ignore_ascii_case(t));
        Named(tokens(headers, &CONNECTION).filter(unknown).filter_map(|token| token.parse().ok()).collect())
    }

    fn is_hop_by_hop(&self, name: &HeaderName) -> bool {
        HOP_BY_HOP.contains(name) || name.as_str().starts_with("proxy-") || self.0.contains(name)
    }
}

fn tokens<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    headers
        .get_all(name)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .filter(|token| !token.is_empty())
}

fn wants_trailers(headers: &HeaderMap) -> bool {
    tokens(headers, &TE)
        .any(|token| token.split(';').next().is_some_and(|coding| coding.trim() == "trailers"))
}

/// HTTP/2 clients may cut the cookies into many headers; HTTP/1.1 knows only one (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(COOKIE).iter().nth(1).is_none() {
        return;
    }
    let crumbs: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(mut cookie) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..])) {
        cookie.set_sensitive(true);
        headers.insert(header::COOKIE, cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines.iter().filter_map(|line| line.split_once(": ")) {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        headers
    }

    fn lines(headers: &HeaderMap) -> Vec<String> {
        headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    fn check_request(client: &[&str], version: Version, expected: &[&str]) {
        let host = HeaderValue::from_static("upstream");
        let found = lines(&request_headers(map(client), version, &host));
        assert_eq!(found[0], "host: upstream");
        assert_eq!(found[1..], *expected);
    }

    #[test]
    fn what_belongs_to_the_connection_stays_behind_and_the_rest_keeps_its_order() {
        check_request(
            &[
                "host: seam",
                "accept: */*",
                "connection: keep-alive, X-Mine",
                "x-mine: 1",
                "keep-alive: timeout=5",
                "proxy-authorization: secret",
                "te: deflate",
                "authorization: Bearer k",
                "x-twice: 1",
                "x-twice: 2",
                "expect: 100-continue",
                "content-length: 3",
            ],
            Version::HTTP_11,
            &["accept: */*", "authorization: Bearer k", "x-twice: 1", "x-twice: 2", "content-length: 3"],
        );
        // Where nothing stays behind, and where the host did not come first.
        let plain = ["host: seam", "accept: */*", "x-twice: 1", "x-twice: 2", "content-length: 3"];
        check_request(&plain, Version::HTTP_11, &plain[1..]);
        check_request(&["accept: */*", "host: seam", "x: 1"], Version::HTTP_11, &["accept: */*", "x: 1"]);
    }

    #[test]
    fn a_length_beside_a_coding_is_not_passed_on() {
        check_request(&["content-length: 3", "transfer-encoding: chunked"], Version::HTTP_11, &[]);
        let mut reply = map(&["x-a: 1", "content-length: 3", "transfer-encoding: chunked", "x-b: 2"]);
        reply_headers(&mut reply);
        assert_eq!(lines(&reply), ["x-a: 1", "x-b: 2"]);
    }

    #[test]
    fn trailers_are_asked_for_where_the_client_takes_them() {
        check_request(&["te: trailers, deflate;q=0.5"], Version::HTTP_11, &["te: trailers"]);
        let mut reply = map(&["trailer: x-sum", "connection: close"]);
        reply_headers(&mut reply);
        assert_eq!(lines(&reply), ["trailer: x-sum"]);
    }

    #[test]
    fn cookies_that_http2_cut_are_one_again() {
        check_request(
            &["cookie: a=1", "x: y", "cookie: b=2"],
            Version::HTTP_2,
            &["cookie: a=1; b=2", "x: y"],
        );
    }

    #[test]
    fn an_upgrade_has_to_be_named_in_connection() {
        assert!(upgrade(&map(&["upgrade: websocket"])).is_none());
        assert!(upgrade(&map(&["connection: keep-alive, Upgrade", "upgrade: websocket"])).is_some());
    }
}
