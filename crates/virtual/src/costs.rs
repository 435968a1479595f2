//! Processing times of a party: the cost of each message that it has read or written, charged once.

use crate::error::VirtualError;
use shakedown_link::{Distribution, Ns, Stream};
use shakedown_sim::{MessageSpec, Sender};
use shakedown_trace::recorder::Event;
use shakedown_trace::{MessageName, Side};

/// A message with its cost to one side.
#[derive(Clone, Debug)]
pub(crate) struct MessageCost {
    is_own: bool,
    name: String,
    cost: Distribution,
}

/// A side's costs, in the order of the handshake.
pub(crate) fn message_costs(messages: &[MessageSpec], side: Side) -> Result<Vec<MessageCost>, VirtualError> {
    messages.iter().map(|message| message_cost(message, side)).collect()
}

fn message_cost(message: &MessageSpec, side: Side) -> Result<MessageCost, VirtualError> {
    let is_own = (message.from == Sender::Client) == (side == Side::Client);
    let spec = if is_own { &message.generate } else { &message.process };
    let name = message.name.clone();
    match Distribution::try_from(spec) {
        Ok(cost) => Ok(MessageCost { is_own, name, cost }),
        Err(error) => Err(VirtualError::Cost { message: name, error }),
    }
}

/// The charged messages of a party.
#[derive(Clone, Debug)]
pub(crate) struct Costs {
    messages: std::rc::Rc<[MessageCost]>,
    charged: u128,
    without_cost: Option<MessageName>,
    stream: Stream,
}

const CHANGE_CIPHER_SPEC: &str = "ChangeCipherSpec";

/// The cost of a call of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charge {
    /// The processing time.
    pub takes: Ns,
    /// The number of messages that were read or written.
    pub messages: u32,
}

impl Costs {
    pub fn new(messages: std::rc::Rc<[MessageCost]>, stream: Stream) -> Self {
        Self { messages, charged: 0, without_cost: None, stream }
    }

    /// The cost of a call, from its events. A repeated message has already been charged.
    pub fn charge(&mut self, events: &[Event]) -> Charge {
        let mut charge = Charge::default();
        for event in events {
            let (is_own, name) = match event {
                Event::Sent(name, ..) => (true, name),
                Event::Received(name, ..) => (false, name),
                _ => continue,
            };
            charge.messages += 1;
            let messages = &self.messages;
            let is_this = |message: &MessageCost| message.is_own == is_own && message.name == name.as_str();
            let mut places = (0..messages.len()).filter(|place| is_this(&messages[*place])).peekable();
            if places.peek().is_none() && name.as_str() != CHANGE_CIPHER_SPEC {
                self.without_cost.get_or_insert(*name);
            }
            if let Some(place) = places.find(|place| self.charged >> place & 1 == 0) {
                self.charged |= 1 << place;
                charge.takes += messages[place].cost.draw(&mut self.stream);
            }
        }
        charge
    }

    /// The first message that has a cost and did not occur. Tickets may arrive after the handshake, and TLS 1.3's
    /// ChangeCipherSpec, which has no meaning, may be missing.
    pub fn missing(&self) -> Option<&str> {
        let (_, message) = self.messages.iter().enumerate().find(|(place, message)| {
            self.charged >> place & 1 == 0
                && message.cost.as_constant() != Some(Ns::ZERO)
                && !["NewSessionTicket", CHANGE_CIPHER_SPEC].contains(&message.name.as_str())
        })?;
        Some(&message.name)
    }

    /// A message that occurred and has no cost.
    pub fn without_cost(&self) -> Option<MessageName> {
        self.without_cost
    }
}

/// Maximum number of messages in a handshake: one bit each.
pub(crate) const MAX_MESSAGES: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use shakedown_link::{DistributionSpec, Purpose};

    fn message(from: Sender, name: &str, generate_s: f64, process_s: f64) -> MessageSpec {
        MessageSpec {
            from,
            name: name.into(),
            bytes: 10,
            flight: 1,
            unit: 1,
            generate: DistributionSpec::Constant { s: generate_s },
            process: DistributionSpec::Constant { s: process_s },
        }
    }

    #[test]
    fn each_message_is_charged_to_either_side_once() {
        let messages = [
            message(Sender::Client, "ClientHello", 1.0, 2.0),
            message(Sender::Server, "Certificate", 4.0, 8.0),
            message(Sender::Client, "Certificate", 16.0, 32.0),
        ];
        let messages = message_costs(&messages, Side::Server).expect("costs");
        let mut costs = Costs::new(messages.into(), Stream::of(1, 1, Purpose(201)));
        let received = |name| Event::Received(name, 10, 0);
        let first = [Event::Enter(0), received(MessageName::ClientHello), Event::Leave(1)];
        assert_eq!(costs.charge(&first), Charge { takes: Ns::from_s(2), messages: 1 });
        // A retransmitted flight: the same message again costs nothing.
        assert_eq!(costs.charge(&first), Charge { takes: Ns::ZERO, messages: 1 });
        assert_eq!(costs.missing(), Some("Certificate"));
        // The server's Certificate and the client's have the same name and different costs.
        let both = [Event::Sent(MessageName::Certificate, 10, 0), received(MessageName::Certificate)];
        assert_eq!(costs.charge(&both), Charge { takes: Ns::from_s(36), messages: 2 });
        assert_eq!(costs.missing(), None);
        assert_eq!(costs.without_cost(), None);
        assert_eq!(costs.charge(&[received(MessageName::Finished)]).takes, Ns::ZERO);
        assert_eq!(costs.without_cost(), Some(MessageName::Finished));
    }
}
