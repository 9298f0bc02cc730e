//! Whether a client that reads an event stream stands between two events.

/// The last bytes of an event stream: enough to know whether an event is open.
#[derive(Debug, Default)]
pub(super) struct Boundary {
    last: [u8; 4],
    started: bool,
}

impl Boundary {
    /// These bytes went on.
    pub(super) fn pass(&mut self, data: &[u8]) {
        for &byte in &data[data.len().saturating_sub(4)..] {
            self.last.rotate_left(1);
            self.last[3] = byte;
        }
        self.started |= !data.is_empty();
    }

    /// An event ends with an empty line; lines end with LF, CRLF or CR.
    pub(super) fn is_between_events(&self) -> bool {
        let [.., a, b, c] = self.last;
        !self.started
            || self.last == *b"\r\n\r\n"
            || [b, c] == *b"\n\n"
            || [b, c] == *b"\r\r"
            || [a, b, c] == *b"\n\r\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(chunks: &[&str], expected: bool) {
        let mut boundary = Boundary::default();
        for chunk in chunks {
            boundary.pass(chunk.as_bytes());
        }
        assert_eq!(boundary.is_between_events(), expected, "{chunks:?}");
    }

    #[test]
    fn an_event_is_over_after_an_empty_line_wherever_the_stream_is_cut() {
        check(&[], true);
        check(&["data: 1\n\n"], true);
        check(&["data: 1\r\n", "\r", "\n"], true);
        check(&["data: 1\r\r"], true);
        check(&["data: 1\n"], false);
        check(&["data: 1\r\n"], false);
        check(&["data: 1\n\ndata"], false);
    }
}
