//! How an event stream ends that is broken off: with an error event that the
//! clients of its dialect know as one.

use bytes::Bytes;

use super::object::{member, with_member};

/// What stands before an event's number in the dialect that numbers events. Inside a string its quotes are escaped.
const NUMBER: &[u8] = br#""sequence_number":"#;
/// Bytes of the end of a chunk that may belong to a number in the next: the words, and as many digits as numbers have.
const TAIL: usize = NUMBER.len() + 20;

/// What an error event has to know of the events before it.
#[derive(Debug, Default)]
pub struct Ending {
    /// The last number that was seen; none where events have none.
    last: Option<u64>,
    /// The end of what was seen, at most `TAIL` bytes.
    tail: Vec<u8>,
}

impl Ending {
    /// These bytes went on.
    pub fn pass(&mut self, bytes: &[u8]) {
        // Where a stream is cut in the middle of a number, the whole of it comes again with the next bytes.
        let head = &bytes[..bytes.len().min(TAIL)];
        let across = last_number(&[&self.tail, head].concat());
        self.last = last_number(bytes).or(across).or(self.last);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL));
    }

    /// The last event, which tells this error: a body in the shape of an error.
    pub fn error_event(&self, body: &str) -> Bytes {
        let event = match self.last {
            Some(last) => {
                numbered(body, last.saturating_add(1)).map(|data| format!("event: error\ndata: {data}\n\n"))
            }
            None => None,
        };
        event.unwrap_or_else(|| format!("data: {body}\n\n")).into()
    }
}

/// Readers look for the error's parts in one place or the other.
fn numbered(body: &str, number: u64) -> Option<String> {
    let mut event = with_member(r#"{"type":"error"}"#, "sequence_number", &number.to_string())?;
    let error = member(body, "error")?;
    for name in ["code", "message", "param"] {
        event = with_member(&event, name, member(error, name).unwrap_or("null"))?;
    }
    with_member(&event, "error", error)
}

/// The last whole number of an event in these bytes.
fn last_number(bytes: &[u8]) -> Option<u64> {
    let mut end = bytes.len();
    while let Some(at) = memchr::memmem::rfind(bytes.get(..end)?, NUMBER) {
        let digits = bytes.get(at + NUMBER.len()..)?.trim_ascii_start();
        let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if (1..digits.len()).contains(&length) {
            return std::str::from_utf8(&digits[..length]).ok()?.parse().ok();
        }
        end = at;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"error":{"message":"m","type":"t","param":null,"code":"c"}}"#;

    /// The event behind these chunks.
    #[track_caller]
    fn check(chunks: &[&str], expected: &str) {
        let mut ending = Ending::default();
        for chunk in chunks {
            ending.pass(chunk.as_bytes());
        }
        assert_eq!(ending.error_event(BODY), expected.as_bytes(), "{chunks:?}");
    }

    #[test]
    fn where_events_have_no_numbers_the_error_has_none() {
        check(&[], &format!("data: {BODY}\n\n"));
        check(&["data: {\"choices\":[]}\n\n"], &format!("data: {BODY}\n\n"));
        check(&[r#"data: {"x":"\"sequence_number\":7"}"#], &format!("data: {BODY}\n\n"));
    }

    #[test]
    fn where_they_have_the_error_has_the_next_however_the_stream_is_cut() {
        let expected = |number: u64| {
            let parts = r#""code":"c","message":"m","param":null,"error":{"message":"m","type":"t","param":null,"code":"c"}"#;
            format!("event: error\ndata: {{\"type\":\"error\",\"sequence_number\":{number},{parts}}}\n\n")
        };
        let stream =
            "data: {\"sequence_number\":41}\n\ndata: {\"a\":\"\",\"sequence_number\": 419,\"b\":\"\"}\n\n";
        check(&[stream], &expected(420));
        for at in 0..stream.len() {
            check(&[&stream[..at], &stream[at..]], &expected(420));
        }
        let bytes: Vec<String> = stream.chars().map(String::from).collect();
        check(&bytes.iter().map(String::as_str).collect::<Vec<_>>(), &expected(420));
    }
}
