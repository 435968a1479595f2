//! The energy of a handshake from the client's battery.

use crate::checked::Class;
use crate::client::Client;
use shakedown_link::{EnergySpec, Ns, RadioTimes};
use std::collections::BTreeSet;

/// The parts of an energy, by bit. A set bit means that the power of this part is not known; the energy is then the
/// sum of the other parts.
pub const PARTS: [&str; 8] = [
    "processor",
    "processor waiting",
    "radio",
    "radio sending",
    "radio receiving",
    "radio waiting",
    "radio set-up",
    "radio tail",
];

/// The names of the [`PARTS`] whose bits are set.
#[must_use]
pub fn missing_parts(bits: u8) -> BTreeSet<String> {
    let missing = PARTS.iter().enumerate().filter(|(part, _)| bits >> part & 1 == 1);
    missing.map(|(_, name)| (*name).into()).collect()
}

/// The bit of the processor.
const PROCESSOR: u8 = 1;

/// A client's energy, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClientEnergy {
    /// The energy of the radio; `None`: unknown.
    pub radio_j: Option<f64>,
    /// The energy of the processor; `None`: unknown.
    pub processor_j: Option<f64>,
    /// The [`PARTS`] that are not included, as bits.
    pub missing: u8,
}

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
    /// The energy of this use, as far as it is known.
    #[must_use]
    pub fn energy(&self, radio: &EnergySpec) -> ClientEnergy {
        let mut energy = ClientEnergy::default();
        match (self.active_w, self.idle_w) {
            (None, _) => energy.missing |= PROCESSOR,
            (Some(active_w), idle_w) => {
                // Waiting while the radio is set up is counted as part of waking the radio.
                let setting_up = self.radio.map_or(Ns::ZERO, |times| times.setting_up);
                let waiting = self.elapsed.since(self.computing + setting_up);
                if idle_w.is_none() && waiting > Ns::ZERO {
                    energy.miss(1);
                }
                let waited_j = idle_w.unwrap_or(0.0) * waiting.as_secs_f64();
                energy.processor_j = Some(active_w * self.computing.as_secs_f64() + waited_j);
            }
        }
        if let Some(times) = &self.radio {
            energy.add_radio(radio, times);
        }
        energy
    }
}

/// The energy that a client's radio and processor have used so far.
#[inline]
pub(crate) fn client_energy(client: &Client<'_>, class: &Class, now: Ns) -> ClientEnergy {
    if client.plan.client_cpu_w.is_none() && client.path.is_none() {
        // Without links there is no radio.
        return ClientEnergy { missing: PROCESSOR, ..ClientEnergy::default() };
    }
    used(client, class, now)
}

fn used(client: &Client<'_>, class: &Class, now: Ns) -> ClientEnergy {
    ClientUse {
        elapsed: now - client.planned,
        computing: client.sides[0].cpu,
        active_w: client.plan.client_cpu_w,
        idle_w: client.plan.client_idle_w,
        radio: client.path.as_ref().map(|path| path.times(client.planned, now)),
    }
    .energy(&class.energy)
}

impl ClientEnergy {
    /// True if a part of it is known.
    #[inline]
    pub fn is_known(&self) -> bool {
        self.radio_j.is_some() || self.processor_j.is_some()
    }

    fn miss(&mut self, part: u8) {
        self.missing |= 1 << part;
    }

    fn add_radio(&mut self, power: &EnergySpec, times: &RadioTimes) {
        let over = |watts: Option<f64>, time: Ns| watts.map(|watts| watts * time.as_secs_f64());
        let moved = |watts, time, per_byte: Option<f64>, bytes: u64| {
            let by_byte = per_byte.map(|joules| joules * bytes as f64);
            match (over(watts, time), by_byte) {
                (Some(by_time), Some(by_byte)) => Some(by_time + by_byte),
                (by_time, by_byte) => by_time.or(by_byte),
            }
        };
        let sending = moved(power.send_w, times.sending, power.send_j_per_byte, times.sent_bytes);
        let receiving =
            moved(power.receive_w, times.receiving, power.receive_j_per_byte, times.received_bytes);
        let setup = power
            .setup_j
            .map(|joules| joules * f64::from(times.setups))
            .or(over(power.setup_w, times.setting_up));
        let tail = power.tail_w.zip(power.tail_s).map(|(watts, s)| watts * s);
        let parts = [
            (3, sending, times.sent_bytes > 0),
            (4, receiving, times.received_bytes > 0),
            (5, over(power.idle_w, times.waiting), times.waiting > Ns::ZERO),
            (6, setup, times.setups > 0),
            (7, tail, true),
        ];
        // An idle radio uses this power also without a handshake; the power is counted if the profile gives it.
        let mut sum = over(power.sleep_w, times.idle).unwrap_or(0.0);
        for (part, joules, is_needed) in parts {
            match joules {
                Some(joules) => sum += joules,
                None if is_needed => self.miss(part),
                None => {}
            }
        }
        if sending.is_some() || receiving.is_some() {
            self.radio_j = Some(sum);
        }
    }
}
