//! Endpoints that may be recorded until their handshake has ended.

use shakedown_trace::{Endpoint, Recorded, Recording};
use std::ops::{Deref, DerefMut};

/// An endpoint that may be recorded until its handshake has ended. A value is kept with a recording.
pub enum MaybeRecorded<T> {
    Plain(Box<dyn Endpoint>),
    Recorded(Box<Recorded<Box<dyn Endpoint>>>, T),
    Nothing,
}

impl<T> MaybeRecorded<T> {
    /// Records the endpoint if there is a value to keep.
    pub fn new(endpoint: Box<dyn Endpoint>, value: Option<T>) -> Self {
        match value {
            Some(value) => {
                Self::Recorded(Box::new(Recorded::new(endpoint, Recording::new(Default::default()))), value)
            }
            None => Self::Plain(endpoint),
        }
    }

    /// The value that is kept with the recording, while there is one.
    pub fn value(&mut self) -> Option<&mut T> {
        match self {
            Self::Recorded(_, value) => Some(value),
            Self::Plain(_) | Self::Nothing => None,
        }
    }

    /// Ends the recording after the handshake; returns it and its value, if there was one.
    pub fn finish(&mut self) -> Option<(Recording, T)> {
        let (plain, found) = match std::mem::replace(self, Self::Nothing) {
            Self::Recorded(recorded, value) => {
                let (endpoint, recording) = recorded.into_parts();
                (Self::Plain(endpoint), Some((recording, value)))
            }
            other => (other, None),
        };
        *self = plain;
        found
    }
}

impl<T> Deref for MaybeRecorded<T> {
    type Target = dyn Endpoint;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Plain(endpoint) => &**endpoint,
            Self::Recorded(recorded, _) => &**recorded,
            Self::Nothing => unreachable!("`finish` leaves a plain endpoint"),
        }
    }
}

impl<T> DerefMut for MaybeRecorded<T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Plain(endpoint) => &mut **endpoint,
            Self::Recorded(recorded, _) => &mut **recorded,
            Self::Nothing => unreachable!("`finish` leaves a plain endpoint"),
        }
    }
}
