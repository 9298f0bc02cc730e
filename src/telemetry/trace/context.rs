//! The W3C trace context: what `traceparent` says
//! (<https://www.w3.org/TR/trace-context/#traceparent-header>).

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header.
pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// A span's place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Context {
    /// Not zero.
    pub(super) trace: u128,
    /// Not zero.
    pub(super) span: u64,
    /// Whether whoever made it records it.
    pub(super) sampled: bool,
}

impl Context {
    /// The context that a request came with; none where it is missing, given twice, or does not read.
    pub(super) fn of(headers: &HeaderMap) -> Option<Context> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        let value = values.next()?;
        if values.next().is_some() { None } else { Context::read(value.to_str().ok()?) }
    }

    /// Reads a value of `traceparent`. A later version may have more behind the flags.
    pub(super) fn read(text: &str) -> Option<Context> {
        let mut parts = text.splitn(5, '-');
        let (version, trace) = (hex(parts.next()?, 2)?, hex(parts.next()?, 32)?);
        let (span, flags) = (hex(parts.next()?, 16)?, hex(parts.next()?, 2)?);
        let more = parts.next().is_some();
        let is_valid = version != 0xff && !(version == 0 && more) && trace != 0 && span != 0;
        is_valid.then_some(Context { trace, span: span as u64, sampled: flags & 1 == 1 })
    }

    /// The value of `traceparent`.
    pub(super) fn text(&self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }

    /// The header's value.
    pub(super) fn value(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.text()).ok()
    }
}

/// Exactly `digits` lower-case hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == digits && text.bytes().all(is_hex)).then(|| u128::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_is_written_as_it_was() {
        for text in [
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000001-0000000000000001-00",
        ] {
            assert_eq!(Context::read(text).map(|context| context.text()).as_deref(), Some(text));
        }
        let later = Context::read("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-09-what-comes")
            .expect("it reads");
        assert_eq!(later.text(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    }

    #[test]
    fn what_the_standard_forbids_does_not_read() {
        for text in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Context::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_header_that_is_given_twice_counts_as_none() {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_static("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        headers.append(TRACEPARENT, value.clone());
        assert!(Context::of(&headers).is_some());
        headers.append(TRACEPARENT, value);
        assert!(Context::of(&headers).is_none());
    }
}
