//! The proxy that the environment names for the way out (`HTTPS_PROXY`), and
//! the hosts that it is not for (`NO_PROXY`).

use std::fmt;
use std::net::IpAddr;

use http::uri::{Authority, Uri};

use super::parse::{BaseUrl, Secret};

/// The variables that others set too, in the order in which they are asked; the first that is set counts.
pub const PROXY: [&str; 2] = ["HTTPS_PROXY", "https_proxy"];
/// The variables that name the exceptions.
pub const EXCEPT: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// How an https host is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    proxy: Option<Proxy>,
    except: Vec<Exception>,
}

/// A proxy that opens tunnels (`CONNECT`).
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// What stands in `Proxy-Authorization`, where user and password were given.
    pub login: Option<Secret>,
}

/// A host, or many, that are reached without a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Exception {
    All,
    /// This name and every name below it; at this port, if there is one.
    Name(String, Option<u16>),
    /// Addresses whose first bits are these.
    Network(IpAddr, u8),
}

impl Proxies {
    /// Reads both variables; an error says what is wrong with the proxy's, without repeating it.
    pub(super) fn read(proxy: Option<&str>, except: Option<&str>) -> Result<Proxies, String> {
        Ok(Proxies {
            proxy: proxy.map(Proxy::read).transpose()?,
            except: except.into_iter().flat_map(|list| list.split(',')).filter_map(Exception::read).collect(),
        })
    }

    /// The proxy on the way to `base`; none where there is none, or where plain HTTP is spoken.
    pub fn on_the_way(&self, base: &BaseUrl) -> Option<&Proxy> {
        let excepted = self.except.iter().any(|exception| exception.holds(&base.host, base.port));
        self.proxy.as_ref().filter(|_| base.tls && !excepted)
    }
}

/// Without user and password, which people and logs have no need of.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = &self.host;
        if host.contains(':') {
            write!(f, "[{host}]:{}", self.port)
        } else {
            write!(f, "{host}:{}", self.port)
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

impl Proxy {
    fn read(text: &str) -> Result<Proxy, String> {
        // As other programs take it: an address alone is that of a plain proxy.
        let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Uri = url.parse().map_err(|_| String::new())?;
        match uri.scheme_str() {
            Some("http") => {}
            Some(scheme) => return Err(format!("a proxy is spoken to over http, not {scheme}")),
            None => return Err(String::new()),
        }
        let authority: &Authority = uri.authority().ok_or_else(String::new)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err("the host is missing".into());
        }
        let login = match authority.as_str().rsplit_once('@') {
            Some((login, _)) => Some(basic(login).ok_or("its user or password does not read")?),
            None => None,
        };
        Ok(Proxy { host, port: authority.port_u16().unwrap_or(80), login })
    }
}

impl Exception {
    /// What cannot be understood excepts nothing, as with other programs.
    fn read(text: &str) -> Option<Exception> {
        let text = text.trim();
        if text == "*" {
            return Some(Exception::All);
        }
        if let Some((address, bits)) = text.split_once('/') {
            let (address, bits) = (address.parse::<IpAddr>().ok()?, bits.parse().ok()?);
            return (bits <= width(address)).then_some(Exception::Network(address, bits));
        }
        if let Ok(address) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return Some(Exception::Network(address, width(address)));
        }
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) => (name, Some(port.parse().ok()?)),
            None => (text, None),
        };
        let name = name.trim_start_matches("*.").trim_start_matches('.').to_ascii_lowercase();
        (!name.is_empty()).then_some(Exception::Name(name, port))
    }

    fn holds(&self, host: &str, port: u16) -> bool {
        match self {
            Exception::All => true,
            Exception::Name(name, only) => {
                let host = host.trim_end_matches('.').to_ascii_lowercase();
                let below = host
                    .strip_suffix(name.as_str())
                    .is_some_and(|head| head.is_empty() || head.ends_with('.'));
                below && only.is_none_or(|only| only == port)
            }
            Exception::Network(network, bits) => host
                .parse()
                .is_ok_and(|address: IpAddr| within(address.to_canonical(), network.to_canonical(), *bits)),
        }
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Whether the first `bits` of both are the same.
fn within(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let differ = match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        _ => return false,
    };
    differ >= u32::from(bits)
}

/// `user:password`, in which `%40` stands for `@`, as the header has it.
fn basic(login: &str) -> Option<Secret> {
    let decoded = percent_decoded(login)?;
    Some(Secret::new(format!("Basic {}", base64(&decoded))))
}

fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let pair = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    Some(decoded)
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let number =
            three.iter().fold(0u32, |n, byte| (n << 8) | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn check(proxy: &str, except: &str, upstream: &str, expected: Option<&str>) {
        let proxies = Proxies::read(Some(proxy), Some(except)).expect("it reads");
        let base = (parse::BASE_URL.parse)(upstream).expect("it reads");
        let way = proxies.on_the_way(&base).map(ToString::to_string);
        assert_eq!(way.as_deref(), expected, "{proxy} {except} {upstream}");
    }

    #[test]
    fn an_https_host_is_reached_through_the_proxy_unless_it_is_excepted() {
        let (proxy, api) = ("http://proxy:3128", "https://api.example/v1");
        check(proxy, "", api, Some("proxy:3128"));
        check("proxy", "", api, Some("proxy:80"));
        check("http://u:p@[::1]:8/", "", api, Some("[::1]:8"));
        check(proxy, "", "http://api.example/v1", None);
        for except in ["*", "api.example", ".example", "example", "*.example", "x, API.Example:443"] {
            check(proxy, except, api, None);
        }
        for except in ["pi.example", "v.api.example", "api.example:8443", "10.0.0.0/8", ":", "/", "a/b"] {
            check(proxy, except, api, Some("proxy:3128"));
        }
        check(proxy, "10.0.0.0/8", "https://10.1.2.3/v1", None);
        check(proxy, "10.0.0.0/8", "https://11.1.2.3/v1", Some("proxy:3128"));
        check(proxy, "10.1.2.3", "https://10.1.2.3/v1", None);
        check(proxy, "fd00::/8", "https://[fd12::1]/v1", None);
        check(proxy, "0.0.0.0/0", "https://10.1.2.3/v1", None);
        check(proxy, "10.0.0.0/33", "https://10.1.2.3/v1", Some("proxy:3128"));
    }

    #[test]
    fn user_and_password_are_for_the_proxy_alone() {
        let proxy = Proxy::read("http://u%40x:p%3a@proxy").expect("it reads");
        // "u@x:p:"
        assert_eq!(proxy.login.as_ref().map(Secret::reveal), Some("Basic dUB4OnA6"));
        assert_eq!(format!("{proxy} {proxy:?}"), "proxy:80 Proxy(proxy:80)");
        for wrong in ["https://proxy", "socks5://hunter2@proxy", "http://", "http://u:hunter2%4@proxy", "a b"]
        {
            let remark = Proxy::read(wrong).expect_err(wrong);
            assert!(!remark.contains("hunter2"), "{remark}");
        }
    }

    #[test]
    fn base64_fills_its_last_four_letters() {
        for (bytes, expected) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
    }
}
