//! Responses after the handshake: a minimum of HTTP for its clients, plain bytes for others.
//!
//! A client whose first byte is a capital letter is treated as an HTTP/1 client: every request is answered with `200
//! OK` and the payload. Any other first byte is answered with the payload alone, once.

const MAX_HEAD_BYTES: usize = 8_192;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub head: Vec<u8>,
    pub payload_bytes: u64,
    /// Whether the connection is closed after the answer.
    pub close: bool,
}

#[derive(Debug, Default)]
pub struct Exchange {
    /// Bytes that are not parsed yet: at most the head of a request and the bytes that were received with its end.
    received: Vec<u8>,
    /// The peer does not speak HTTP, and has been answered.
    plain: bool,
}

impl Exchange {
    pub fn take(&mut self, data: &[u8]) {
        if !self.plain {
            self.received.extend_from_slice(data);
        }
    }

    /// True while a request has begun and not ended.
    pub fn is_midway(&self) -> bool {
        !self.received.is_empty()
    }

    /// The answer to the next request that has been received completely.
    pub fn answer(&mut self, payload_bytes: u64, last: bool) -> Option<Answer> {
        let first = *self.received.first()?;
        if !first.is_ascii_uppercase() {
            self.plain = true;
            self.received = Vec::new();
            return Some(Answer { head: Vec::new(), payload_bytes, close: false });
        }
        let Some(end) = end_of_head(&self.received) else {
            if self.received.len() <= MAX_HEAD_BYTES {
                return None;
            }
            self.received = Vec::new();
            let head = b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            return Some(Answer { head: head.to_vec(), payload_bytes: 0, close: true });
        };
        let (keeps_alive, head_only) = request(&self.received[..end]);
        self.received.drain(..end);
        if self.received.is_empty() {
            // Idle connections use no memory for the buffer.
            self.received = Vec::new();
        }
        let close = last || !keeps_alive;
        let connection = if close { "close" } else { "keep-alive" };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {payload_bytes}\r\n\
             Connection: {connection}\r\n\r\n"
        );
        let payload_bytes = if head_only { 0 } else { payload_bytes };
        Some(Answer { head: head.into_bytes(), payload_bytes, close })
    }
}

/// Length of the head, including the blank line that ends it.
fn end_of_head(received: &[u8]) -> Option<usize> {
    let strict = find(received, b"\r\n\r\n").map(|place| place + 4);
    let lenient = find(received, b"\n\n").map(|place| place + 2);
    strict.into_iter().chain(lenient).min()
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// Whether the request in this head keeps the connection open, and whether it is a HEAD request.
fn request(head: &[u8]) -> (bool, bool) {
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let (mut keeps_alive, mut has_body) = (first.trim_end().ends_with("http/1.1"), false);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        match (name.trim(), value.trim()) {
            ("connection", value) => {
                keeps_alive = !value.contains("close") && (keeps_alive || value.contains("keep-alive"));
            }
            ("content-length", length) => has_body |= length != "0",
            ("transfer-encoding", _) => has_body = true,
            _ => {}
        }
    }
    // Bodies are not read here, so the start of a next request would be unknown.
    (keeps_alive && !has_body, first.starts_with("head "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ask(request: &str) -> Option<Answer> {
        let mut exchange = Exchange::default();
        exchange.take(request.as_bytes());
        exchange.answer(5, false)
    }

    #[test]
    fn version_and_headers_decide_whether_to_keep_the_connection() {
        let close = |request| ask(request).unwrap().close;
        assert!(!close("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(close("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        assert!(close("GET / HTTP/1.0\r\n\r\n"));
        assert!(!close("GET / HTTP/1.0\r\nconnection: Keep-Alive\r\n\r\n"));
        assert!(close("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"));
        assert!(close("GET /\n\n"));
    }

    #[test]
    fn split_request_head_is_answered_when_complete() {
        let mut exchange = Exchange::default();
        let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        for byte in &request[..request.len() - 1] {
            exchange.take(&[*byte]);
            assert_eq!(exchange.answer(5, false), None);
        }
        exchange.take(b"\n");
        let answer = exchange.answer(5, false).unwrap();
        assert_eq!(answer.payload_bytes, 5);
        assert!(!exchange.is_midway());
    }

    #[test]
    fn pipelined_requests_are_answered_one_by_one() {
        let mut exchange = Exchange::default();
        exchange.take(b"GET /a HTTP/1.1\r\n\r\nHEAD /b HTTP/1.1\r\n\r\n");
        assert_eq!(exchange.answer(5, false).unwrap().payload_bytes, 5);
        let second = exchange.answer(5, false).unwrap();
        assert_eq!(second.payload_bytes, 0);
        assert!(String::from_utf8(second.head).unwrap().contains("Content-Length: 5\r\n"));
        assert_eq!(exchange.answer(5, false), None);
    }

    #[test]
    fn endless_request_head_is_refused() {
        let answer = ask(&format!("GET /{}", "a".repeat(MAX_HEAD_BYTES))).unwrap();
        assert!(answer.close && answer.head.starts_with(b"HTTP/1.1 431 "));
    }

    #[test]
    fn clients_without_http_get_the_payload_once() {
        let mut exchange = Exchange::default();
        exchange.take(b"\x00");
        assert_eq!(
            exchange.answer(9, false),
            Some(Answer { head: Vec::new(), payload_bytes: 9, close: false })
        );
        exchange.take(b"GET / HTTP/1.1\r\n\r\n");
        assert_eq!(exchange.answer(9, false), None);
    }
}
