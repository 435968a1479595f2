//! Computing times in virtual time: each side's estimated work between the messages that it receives
//! and those that it sends.

use shakedown_link::{Distribution, DistributionError, Ns, Stream};
use shakedown_sim::{HandshakeSpec, MessageSpec, Sender};

/// A side's work in steps: a step lasts from the end of a received flight to the end of the next sent one.
#[derive(Clone, Debug)]
pub struct Steps(Vec<Vec<Distribution>>);

impl Steps {
    fn of(handshake: &HandshakeSpec, side: Sender) -> Result<Self, DistributionError> {
        let mut flights: Vec<Vec<&MessageSpec>> = Vec::new();
        for message in &handshake.messages {
            match flights.last_mut() {
                Some(flight) if flight[0].from == message.from => flight.push(message),
                _ => flights.push(vec![message]),
            }
        }
        let mut steps = Vec::new();
        let mut received: &[&MessageSpec] = &[];
        let mut open = false;
        for flight in &flights {
            if flight[0].from == side {
                let process = received.iter().map(|message| &message.process);
                let generate = flight.iter().map(|message| &message.generate);
                steps.push(process.chain(generate).map(Distribution::try_from).collect::<Result<_, _>>()?);
                open = false;
            } else {
                received = flight;
                open = true;
            }
        }
        if open {
            let process = received.iter().map(|message| &message.process);
            steps.push(process.map(Distribution::try_from).collect::<Result<_, _>>()?);
        }
        Ok(Self(steps))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Draws the time of a step; 0 beyond the last step.
    pub fn draw(&self, step: usize, stream: &mut Stream) -> Ns {
        let parts = self.0.get(step).into_iter().flatten();
        parts.fold(Ns::ZERO, |sum, part| sum + part.draw(stream))
    }

    pub fn draw_all(&self, stream: &mut Stream) -> Ns {
        (0..self.len()).fold(Ns::ZERO, |sum, step| sum + self.draw(step, stream))
    }
}

#[derive(Clone, Debug)]
pub struct Work {
    pub mobile: Steps,
    pub sgsn: Steps,
}

impl Work {
    pub fn of(handshake: &HandshakeSpec) -> Result<Self, DistributionError> {
        Ok(Self {
            mobile: Steps::of(handshake, Sender::Client)?,
            sgsn: Steps::of(handshake, Sender::Server)?,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use shakedown_link::DistributionSpec;
    use shakedown_sim::TransportKind;

    fn handshake(senders: &str) -> HandshakeSpec {
        let message = |(place, sender): (usize, char)| MessageSpec {
            from: if sender == 'c' { Sender::Client } else { Sender::Server },
            name: format!("m{place}"),
            bytes: 1,
            flight: 0,
            unit: 0,
            generate: DistributionSpec::Constant { s: f64::from(1 << (2 * place)) },
            process: DistributionSpec::Constant { s: f64::from(2 << (2 * place)) },
        };
        HandshakeSpec {
            name: "test".into(),
            transport: TransportKind::Stream,
            messages: senders.chars().enumerate().map(message).collect(),
            write_bytes: None,
            retransmission: None,
            client_cpu_w: None,
            client_idle_w: None,
        }
    }

    fn seconds(steps: &Steps) -> Vec<u64> {
        let mut stream = Stream::seeded(1);
        (0..steps.len()).map(|step| steps.draw(step, &mut stream).0 / 1_000_000_000).collect()
    }

    #[test]
    fn every_message_is_generated_and_processed_once_in_its_step() {
        // generate of message i: 4^i; process: 2 * 4^i.
        let full = Work::of(&handshake("csscs")).unwrap();
        assert_eq!(seconds(&full.mobile), [1, 2 * (4 + 16) + 64, 2 * 256]);
        assert_eq!(seconds(&full.sgsn), [2 + 4 + 16, 2 * 64 + 256]);
        let resumed = Work::of(&handshake("csc")).unwrap();
        assert_eq!(seconds(&resumed.mobile), [1, 2 * 4 + 16]);
        assert_eq!(seconds(&resumed.sgsn), [2 + 4, 2 * 16]);
    }
}
