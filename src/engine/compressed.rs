//! The watched reply that comes compressed, though `identity` was asked for:
//! forwarded as it is, read in a bounded decoded copy; or, where its calls may
//! have to change, decoded on its way.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use super::reply::Reply;
use super::watch::Watcher;

/// Watches a compressed reply.
#[derive(Debug)]
pub struct Compressed {
    decoder: Decoder,
    watcher: Watcher,
    /// The last chunk: it is the reply's end, and which is the last is known at the next.
    held: Vec<Bytes>,
    /// The copy grew over its bound, or does not decode: nothing is learnt.
    unreadable: bool,
}

/// Decodes a reply chunk by chunk.
#[derive(Debug)]
pub struct Decoder(Kind);

#[derive(Debug)]
enum Kind {
    Gzip(MultiGzDecoder<Sink>),
    Zlib(ZlibDecoder<Sink>),
    Deflate(DeflateDecoder<Sink>),
}

/// Takes decoded bytes up to a bound: a small reply may decode to a very large one.
#[derive(Debug)]
struct Sink {
    decoded: Vec<u8>,
    left: usize,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        self.decoded.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Compressed {
    /// Watches a reply in this content encoding, decoded to `limit` bytes at most; none if it is not known.
    pub fn new(encoding: &str, watcher: Watcher, limit: usize) -> Option<Self> {
        let decoder = Decoder::new(encoding, limit)?;
        Some(Compressed { decoder, watcher, held: Vec::new(), unreadable: false })
    }

    /// Takes a chunk and gives what may go on now.
    pub fn push(&mut self, chunk: Bytes) -> Vec<Bytes> {
        if !self.unreadable {
            let decoded = self.decoder.take(&chunk);
            match decoded {
                Ok(decoded) => drop(self.watcher.push(decoded.into())),
                Err(_) => self.unreadable = true,
            }
        }
        std::mem::replace(&mut self.held, vec![chunk])
    }

    /// The reply ended. Gives what it said, and the bytes that were held.
    pub fn finish(self, clean: bool) -> (Option<Reply>, Vec<Bytes>) {
        let (reply, _) = self.watcher.finish(clean && !self.unreadable);
        (reply, self.held)
    }
}

impl Decoder {
    /// A decoder of this content encoding that gives `limit` bytes at most; none if it is not known.
    pub fn new(encoding: &str, limit: usize) -> Option<Decoder> {
        let sink = Sink { decoded: Vec::new(), left: limit };
        Some(Decoder(match encoding.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Kind::Gzip(MultiGzDecoder::new(sink)),
            "deflate" => Kind::Zlib(ZlibDecoder::new(sink)),
            _ => return None,
        }))
    }

    /// Takes a chunk and gives what it holds. An error: it is not of the encoding, or grew over the limit.
    pub fn take(&mut self, chunk: &[u8]) -> io::Result<Vec<u8>> {
        self.0.take(chunk)
    }
}

impl Kind {
    fn take(&mut self, chunk: &[u8]) -> io::Result<Vec<u8>> {
        let written = match self {
            Kind::Gzip(decoder) => decoder.write_all(chunk).and_then(|()| decoder.flush()),
            Kind::Zlib(decoder) => decoder.write_all(chunk).and_then(|()| decoder.flush()),
            Kind::Deflate(decoder) => decoder.write_all(chunk).and_then(|()| decoder.flush()),
        };
        match (written, &mut *self) {
            // `deflate` means zlib's format, and some servers send it bare.
            (Err(_), Kind::Zlib(zlib)) if zlib.total_out() == 0 => {
                let left = zlib.get_ref().left;
                *self = Kind::Deflate(DeflateDecoder::new(Sink { decoded: Vec::new(), left }));
                self.take(chunk)
            }
            (Err(error), _) => Err(error),
            (Ok(()), decoder) => Ok(std::mem::take(&mut decoder.sink().decoded)),
        }
    }

    fn sink(&mut self) -> &mut Sink {
        match self {
            Kind::Gzip(decoder) => decoder.get_mut(),
            Kind::Zlib(decoder) => decoder.get_mut(),
            Kind::Deflate(decoder) => decoder.get_mut(),
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;
    use crate::engine::view::Dialect;

    const REPLY: &[u8] = br#"{"id":"1","model":"m","choices":[{"index":0,"message":{"role":"assistant",
        "content":"Your parcel is on its way."},"finish_reason":"stop"}]}"#;

    fn encode(encoding: &str, bytes: &[u8]) -> Vec<u8> {
        match encoding {
            "gzip" => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            "zlib" => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            _ => {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
        }
    }

    fn watch(encoding: &str, bytes: &[u8], limit: usize) -> Option<String> {
        let watcher = Watcher::new(Dialect::Chat, false, limit);
        let mut compressed = Compressed::new(encoding, watcher, limit).unwrap();
        let mut out: Vec<Bytes> = Vec::new();
        for part in bytes.chunks(5) {
            out.extend(compressed.push(Bytes::copy_from_slice(part)));
        }
        let (reply, rest) = compressed.finish(true);
        out.extend(rest);
        assert_eq!(out.concat(), bytes, "what came goes on");
        reply.map(|reply| reply.text)
    }

    #[test]
    fn a_compressed_reply_is_read_and_passes_as_it_is() {
        let text = Some("Your parcel is on its way.".to_owned());
        assert_eq!(watch("gzip", &encode("gzip", REPLY), 1 << 20), text);
        assert_eq!(watch("deflate", &encode("zlib", REPLY), 1 << 20), text);
        assert_eq!(watch("deflate", &encode("bare", REPLY), 1 << 20), text);
    }

    #[test]
    fn a_reply_that_decodes_to_more_than_the_bound_is_not_read() {
        let bomb = encode("gzip", &vec![b' '; 4 << 20]);
        assert_eq!(watch("gzip", &bomb, 1 << 16), None);
    }

    #[test]
    fn what_does_not_decode_passes_unread() {
        assert_eq!(watch("gzip", b"not gzip at all, but long enough", 1 << 16), None);
        assert!(Compressed::new("br", Watcher::new(Dialect::Chat, false, 9), 9).is_none());
    }
}
