//! The energy of a handshake from the client's battery.

use crate::checked::Class;
use crate::client::Client;
use shakedown_link::{EnergySpec, Ns, RadioTimes};

/// Joules as whole nanojoules, so that sums are exact.
#[must_use]
pub fn nanojoules(joules: f64) -> u64 {
    (joules * 1e9 + 0.5) as u64
}

/// The times for which a client's processor and radio were in use, and the powers of the processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientUse {
    /// Time since the client's arrival.
    pub elapsed: Ns,
    /// The part of this time in which the processor computed.
    pub computing: Ns,
    /// Power of the processor while it computes; `None`: unknown.
    pub active_w: Option<f64>,
    /// Power while it waits; `None`: unknown.
    pub idle_w: Option<f64>,
    /// Times of the radio; `None` if the client has no radio.
    pub radio: Option<RadioTimes>,
}

impl ClientUse {
    /// The energy of this use without the parts whose power is unknown; `None` if neither the processor's nor the
    /// radio's is known.
    #[must_use]
    pub fn energy_j(&self, radio: &EnergySpec) -> Option<f64> {
        let radio_j = self.radio.and_then(|times| radio_energy_j(radio, &times));
        let processor_j = self.active_w.map(|active_w| {
            // Waiting for the first set-up is counted as part of waking the radio.
            let first_setup = self.radio.map_or(Ns::ZERO, |times| times.first_setup);
            let waiting = self.elapsed.since(self.computing + first_setup);
            active_w * self.computing.as_secs_f64() + self.idle_w.unwrap_or(0.0) * waiting.as_secs_f64()
        });
        radio_j.or(processor_j)?;
        Some(radio_j.unwrap_or(0.0) + processor_j.unwrap_or(0.0))
    }
}

/// The energy that a client's radio and processor have used so far, as far as it is known.
#[inline]
pub(crate) fn client_energy_j(client: &Client<'_>, class: &Class, now: Ns) -> Option<f64> {
    if client.plan.client_cpu_w.is_none() && client.path.is_none() {
        // Without links there is no radio.
        return None;
    }
    used_j(client, class, now)
}

fn used_j(client: &Client<'_>, class: &Class, now: Ns) -> Option<f64> {
    ClientUse {
        elapsed: now - client.planned,
        computing: client.sides[0].cpu,
        active_w: client.plan.client_cpu_w,
        idle_w: client.plan.client_idle_w,
        radio: client.path.as_ref().map(|path| path.times(client.planned, now)),
    }
    .energy_j(&class.energy)
}

/// The energy of the radio without the parts whose power is unknown; `None` if neither the power to send nor that to
/// receive is known.
fn radio_energy_j(power: &EnergySpec, times: &RadioTimes) -> Option<f64> {
    let over = |watts: Option<f64>, time: Ns| watts.map(|watts| watts * time.as_secs_f64());
    let moved = |watts, time, per_byte: Option<f64>, bytes: u64| {
        let by_byte = per_byte.map(|joules| joules * bytes as f64);
        match (over(watts, time), by_byte) {
            (Some(by_time), Some(by_byte)) => Some(by_time + by_byte),
            (by_time, by_byte) => by_time.or(by_byte),
        }
    };
    let sending = moved(power.send_w, times.sending, power.send_j_per_byte, times.sent_bytes);
    let receiving = moved(power.receive_w, times.receiving, power.receive_j_per_byte, times.received_bytes);
    sending.or(receiving)?;
    let setup = power.setup_j.map(|joules| joules * f64::from(times.setups));
    let tail = power.tail_w.zip(power.tail_s).map(|(watts, s)| watts * s);
    let again = power.again_j.map(|joules| joules * f64::from(times.setups.saturating_sub(1)));
    let parts = [sending, receiving, over(power.idle_w, times.waiting), setup, tail, again];
    Some(parts.into_iter().flatten().fold(0.0, |sum, joules| sum + joules))
}
