//! Captured messages, before they are interpreted together.

use shakedown_trace::MessageName;

/// The packet in which bytes of one direction were captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) packet: u64,
    /// Nanoseconds since 1970.
    pub(crate) time_ns: u64,
    /// Offset up to which the sender had acknowledged the peer's stream; 0 if unknown.
    pub(crate) peer_acknowledged: u64,
}

/// The packets in which a range of bytes of one direction was captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// Packet of the first byte.
    pub(crate) start: Mark,
    /// Packet that completed the range.
    pub(crate) end: Mark,
    /// Offset of the range's end in the direction's stream; 0 for datagrams.
    pub(crate) end_offset: u64,
}

impl Span {
    /// The span of a datagram.
    pub(crate) fn at(mark: Mark) -> Self {
        Self { start: mark, end: mark, end_offset: 0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Known(MessageName),
    /// A handshake type without a name.
    Unknown(u8),
}

impl Name {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Known(name) => name.as_str().to_owned(),
            Self::Unknown(number) => format!("Unknown({number})"),
        }
    }
}

/// A message that one end sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// 0 or 1: the direction, in the order of the flow's key.
    pub(crate) direction: usize,
    pub(crate) name: Name,
    /// Bytes on the wire, including the message's share of record overhead.
    pub(crate) bytes: u64,
    pub(crate) span: Span,
    /// Sent after its sender's Finished: tickets, key updates, renegotiation.
    pub(crate) after_handshake: bool,
}

/// Limit of messages per connection; later renegotiations and key updates are not reported.
const MAX_MESSAGES: usize = 512;
const MAX_ALERTS: usize = 8;

/// Adds a message. The list grows in small steps, because there are many lists, and most stay short.
pub(crate) fn push_message(list: &mut Vec<Seen>, problems: &mut Problems, seen: Seen) {
    if list.len() == MAX_MESSAGES {
        problems.add(format!("more than {MAX_MESSAGES} messages: the rest is not reported"));
        return;
    }
    if list.len() == list.capacity() {
        list.reserve_exact(4 + list.len() / 4);
    }
    list.push(seen);
}

/// A captured alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenAlert {
    pub(crate) direction: usize,
    pub(crate) time_ns: u64,
    /// Level and description; `None` if the alert is encrypted.
    pub(crate) content: Option<(u8, u8)>,
}

/// Adds an alert; `content` is its level and description, if it could be read.
pub(crate) fn push_alert(list: &mut Vec<SeenAlert>, direction: usize, mark: Mark, content: Option<&[u8]>) {
    if list.len() < MAX_ALERTS {
        let content = match content {
            Some(&[level, description]) => Some((level, description)),
            _ => None,
        };
        list.push(SeenAlert { direction, time_ns: mark.time_ns, content });
    }
}

/// Remarks for the reader of the report, without duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Problems(Vec<String>);

/// Limit per connection.
const MAX_PROBLEMS: usize = 16;

impl Problems {
    pub(crate) fn add(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.0.len() < MAX_PROBLEMS && !self.0.contains(&text) {
            self.0.push(text);
        }
    }

    pub(crate) fn into_list(self) -> Vec<String> {
        self.0
    }
}

/// Puts the messages of both directions into the order in which they were sent.
///
/// Within a direction, that order is known. Between directions, a message that acknowledges bytes of the other side
/// comes after them, even if the capture shows another order. If neither of two TCP messages acknowledges the other,
/// they crossed in transit: then the messages of the side that was sending come first, so that a flight is not
/// divided by a message that its sender had not received. Without acknowledgements, the order of packets decides.
pub(crate) fn in_order(seen: Vec<Seen>) -> Vec<Seen> {
    let (first, second): (Vec<Seen>, Vec<Seen>) =
        seen.into_iter().partition(|message| message.direction == 0);
    let mut merged = Vec::with_capacity(first.len() + second.len());
    let (mut left, mut right) = (first.into_iter().peekable(), second.into_iter().peekable());
    loop {
        let take_left = match (left.peek(), right.peek()) {
            (Some(one), Some(other)) => goes_before(one, other, merged.last()),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return merged,
        };
        merged.extend(if take_left { left.next() } else { right.next() });
    }
}

fn goes_before(one: &Seen, other: &Seen, last: Option<&Seen>) -> bool {
    let (first, second) = (one.span, other.span);
    let known = |earlier: Span, later: Span| later.start.peer_acknowledged >= earlier.end_offset;
    let streams = first.end_offset > 0 && second.end_offset > 0;
    match (known(first, second), known(second, first), last) {
        (true, false, _) if streams => true,
        (false, true, _) if streams => false,
        (false, false, Some(last)) if streams => last.direction == one.direction,
        _ => first.end.packet <= second.end.packet,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(direction: usize, packet: u64, end_offset: u64, peer_acknowledged: u64) -> Seen {
        let mark = Mark { packet, time_ns: packet, peer_acknowledged };
        Seen {
            direction,
            name: Name::Unknown(packet as u8),
            bytes: 1,
            span: Span { end_offset, ..Span::at(mark) },
            after_handshake: false,
        }
    }

    #[test]
    fn acknowledgements_override_the_order_of_packets() {
        // The response was captured before its request.
        let answer = message(1, 1, 50, 100);
        let question = message(0, 2, 100, 0);
        let order: Vec<usize> = in_order(vec![answer, question]).iter().map(|seen| seen.direction).collect();
        assert_eq!(order, [0, 1]);
        // Crossed in transit: the side that was sending continues.
        let crossing =
            vec![message(0, 1, 10, 0), message(1, 2, 20, 10), message(0, 3, 30, 20), message(1, 4, 40, 10)];
        let order: Vec<u64> = in_order(crossing).iter().map(|seen| seen.span.end.packet).collect();
        assert_eq!(order, [1, 2, 4, 3]);
        // Without acknowledgements, the order of packets decides.
        let order: Vec<u64> = in_order(vec![message(1, 2, 0, 0), message(0, 1, 0, 0), message(0, 3, 0, 0)])
            .iter()
            .map(|seen| seen.span.end.packet)
            .collect();
        assert_eq!(order, [1, 2, 3]);
    }
}
